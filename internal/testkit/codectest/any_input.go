package codectest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/google/go-cmp/cmp"
)

// ReportsNoDroppedNative reports whether decoding a request reports nothing about a discarded native
// form.
func ReportsNoDroppedNative(c dialect.Codec, body []byte) bool {
	_, rep, _ := c.DecodeRequest(body, dialect.DecodeOptions{})
	return !slices.ContainsFunc(rep.Losses, func(l dragoman.Loss) bool {
		return strings.Contains(l.Detail, "native form is not kept")
	})
}

// Empty reports whether a codec refused a request because its body would have no messages.
func Empty(err error) bool {
	return errors.Is(err, dragoman.ErrInvalid) && strings.Contains(err.Error(), "at least one message is required")
}

// AnyRequest checks the guarantees for any input as a request: the codec refuses it with
// a DecodeError or passes it through byte for byte, and the rebuilt body can be
// decoded. It returns the request and the decoded rebuilt request; each is nil if
// there is none.
func AnyRequest(t *testing.T, c dialect.Codec, body []byte) (req, back *dragoman.Request) {
	t.Helper()
	req, _, err := c.DecodeRequest(body, dialect.DecodeOptions{})
	if req == nil {
		t.Fatal("no request and no error")
	}
	if err != nil {
		refused(t, err)
		return nil, nil
	}
	same, err := c.EncodeRequest(req, dialect.EncodeOptions{})
	if Empty(err) {
		return req, nil
	}
	if req.Native != nil {
		passedThrough(t, body, same, err)
	}
	built, err := c.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
	if Empty(err) {
		return req, nil // a server of this dialect may accept fields unknown to us
	}
	if err != nil {
		if !errors.Is(err, dragoman.ErrUnsupported) || req.ToolChoice == nil {
			t.Fatal(err)
		}
		return req, nil // a choice of an unknown tool
	}
	validJSON(t, built.Body)
	if back, _, err = c.DecodeRequest(built.Body, dialect.DecodeOptions{}); err != nil {
		t.Fatalf("the rebuilt request cannot be decoded: %v\n%s", err, built.Body)
	}
	return req, back
}

// AnyResponse is like [AnyRequest], for responses. A call that must not run stays
// blocked, both passed through and re-encoded.
func AnyResponse(t *testing.T, c dialect.Codec, body []byte) (resp, back *dragoman.Response) {
	t.Helper()
	resp, _, err := c.DecodeResponse(body, dialect.DecodeOptions{Seed: "s"})
	if resp == nil {
		t.Fatal("no response and no error")
	}
	if err != nil {
		refused(t, err)
		return nil, nil
	}
	mayRun(t, resp, nil)
	same, err := c.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Native != nil && !slices.ContainsFunc(resp.ToolCalls(), func(c *dragoman.ToolCall) bool { return c.Problem != nil }) {
		passedThrough(t, body, same, err)
	}
	built, err := c.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		t.Fatal(err)
	}
	validJSON(t, built.Body)
	back, _, err = c.DecodeResponse(built.Body, dialect.DecodeOptions{})
	if err != nil {
		if resp.Error == nil {
			t.Fatalf("the rebuilt response cannot be decoded: %v\n%s", err, built.Body)
		}
		return resp, nil // the body is an error
	}
	if resp.Error == nil && !resp.Stop.Reason.Runs() && back.Stop.Reason.Runs() && len(back.ToolCalls()) > 0 {
		t.Fatalf("blocked calls run: %+v became %+v\n%s", resp.Stop, back.Stop, built.Body)
	}
	return resp, back
}

// mayHaveField reports whether a body may have the given field of a response, in any spelling.
// Clients must not see that field next to an error.
func mayHaveField(body []byte, field string) bool {
	return bytes.Contains(body, []byte(`\u`)) || bytes.Contains(bytes.ToLower(body), []byte(`"`+strings.ToLower(field)+`"`))
}

func refused(t *testing.T, err error) {
	t.Helper()
	var de *dragoman.DecodeError
	if !errors.As(err, &de) {
		t.Fatalf("%v is not a DecodeError", err)
	}
}

func passedThrough(t *testing.T, body []byte, same dialect.Encoded, err error) {
	t.Helper()
	if err != nil || !bytes.Equal(same.Body, body) {
		t.Fatalf("not byte-identical: %v\ngot  %q\nwant %q", err, same.Body, body)
	}
}

func validJSON(t *testing.T, body []byte) {
	t.Helper()
	if !json.Valid(body) {
		t.Fatalf("not valid JSON: %q", body)
	}
}

// mayRun checks that blocked calls do not run: those with invalid arguments, and those in
// a response that broke off or did not stop for tool calls.
func mayRun(t *testing.T, resp *dragoman.Response, broke error) {
	t.Helper()
	for _, c := range resp.ToolCalls() {
		if c.Problem != nil {
			continue
		}
		if c.Payload == codes.PayloadObject && dragoman.CheckArguments(c.Arguments) != nil {
			t.Fatalf("a call runs with %q", c.Arguments)
		}
		if broke != nil || !resp.Stop.Reason.Runs() {
			t.Fatalf("a call runs after %q, %v", resp.Stop.Reason, broke)
		}
	}
}

// AnyStream checks the guarantees for any input as a stream: its events are in order and
// do not depend on how the bytes are split, blocked calls do not run, and it can be
// re-encoded. It returns the events and the error of the decoder.
func AnyStream(t *testing.T, c dialect.Codec, stream []byte, cut uint16) ([]dragoman.Event, error) {
	t.Helper()
	evs, rep, err := DecodeStream(c, dialect.DecodeOptions{}, stream)
	if err := Order(evs); err != nil {
		t.Fatal(err)
	}
	for _, pieces := range [][][]byte{Cut(stream, int(cut), 1, 2, 3), Pieces(stream, int(cut)%37+1)} {
		again, rep2, err2 := DecodeStream(c, dialect.DecodeOptions{}, pieces...)
		if fmt.Sprint(err) != fmt.Sprint(err2) || rep.String() != rep2.String() {
			t.Fatalf("%v, re-chunked %v\n%s\n%s", err, err2, rep, rep2)
		}
		if diff := DiffEvents(t, evs, again); diff != "" {
			t.Fatal(diff)
		}
	}
	resp, broke := Collect(evs)
	mayRun(t, resp, broke)
	Reencoded(t, c, evs)
	return evs, err
}

// Reencoded encodes events in their own dialect and checks that no other call runs in the
// result. It returns the stream.
func Reencoded(t testing.TB, c dialect.Codec, evs []dragoman.Event) []byte {
	t.Helper()
	out, _ := EncodeStream(t, c, dialect.EncodeOptions{StreamUsage: true}, evs)
	again, _, err := DecodeStream(c, dialect.DecodeOptions{}, out)
	if err == nil {
		err = Order(again)
	}
	if err != nil {
		t.Fatalf("the re-encoded stream: %v\n%q", err, out)
	}
	first, _ := Collect(evs)
	second, _ := Collect(again)
	may := Approved(first)
	for _, call := range Approved(second) {
		if !slices.Contains(may, call) {
			t.Fatalf("after re-encoding %s runs, before only %q\n%q", call, may, out)
		}
	}
	return out
}

// Approved lists the calls of a response that may run.
func Approved(resp *dragoman.Response) []string {
	var out []string
	for _, c := range resp.ToolCalls() {
		if c.Problem == nil {
			args := c.Arguments
			if obj, ok := c.Object(); ok {
				args = string(obj)
			}
			out = append(out, c.Namespace+"."+c.Name+"("+args+")")
		}
	}
	return out
}

// Written encodes events and checks that the result is a valid stream.
func Written(t testing.TB, c dialect.Codec, evs []dragoman.Event, valid func(stream []byte) error) {
	t.Helper()
	out, _ := EncodeStream(t, c, dialect.EncodeOptions{}, evs)
	if err := valid(out); err != nil {
		t.Fatalf("%v\n%q", err, out)
	}
}

// Rebuilt encodes events without their native form and checks that the decoded text is the
// same, except for notes that replace parts without text.
func Rebuilt(t *testing.T, c dialect.Codec, evs []dragoman.Event, notes ...string) {
	t.Helper()
	resp, broke := Collect(evs)
	out, _ := EncodeStream(t, c, dialect.EncodeOptions{Rebuild: true, StreamUsage: true}, evs)
	again, _, err := DecodeStream(c, dialect.DecodeOptions{}, out)
	if err == nil {
		err = Order(again)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	back, _ := Collect(again)
	was, is := resp.Text(), back.Text()
	for _, note := range notes {
		was, is = strings.ReplaceAll(was, note, ""), strings.ReplaceAll(is, note, "")
	}
	if broke == nil && was != is {
		t.Fatalf("%q became %q\n%s", was, is, out)
	}
}

// AnyError checks the guarantees for any input as an error: it has a class, is written
// with an error status, and decodes to the same message. It returns the written
// status. answer is the field of responses that the error must not have.
func AnyError(t *testing.T, c dialect.Codec, status int, body []byte, answer string) int {
	t.Helper()
	e := c.DecodeError(status, nil, body)
	if e == nil || e.Class == "" || e.Status != status || e.RetryAfter < 0 {
		t.Fatalf("%+v", e)
	}
	code, out, _ := c.EncodeError(e)
	if code < 400 || code > 599 {
		t.Fatalf("status %d became %d", status, code)
	}
	validJSON(t, out)
	if e.Native != nil && !bytes.Equal(out, body) && jsonwire.Unambiguous(body) && !mayHaveField(body, answer) {
		t.Fatalf("got  %q\nwant %q", out, body)
	}
	again := c.DecodeError(code, nil, out)
	if again.Native == nil {
		t.Fatalf("%q is not a valid error body", out)
	}
	if e.Message == "" || again.Message == e.Message {
		return code
	}
	if utf8.ValidString(e.Message) || strings.ToValidUTF8(again.Message, "") != strings.ToValidUTF8(e.Message, "") && !strings.Contains(again.Message, "\ufffd") {
		t.Fatalf("%q became %q in %s", e.Message, again.Message, out)
	}
	return code
}

// DiffEvents compares events without their native form, and errors by their text.
func DiffEvents(t testing.TB, want, got []dragoman.Event) string {
	t.Helper()
	if a, b := EventLines(t, want), EventLines(t, got); a != b {
		return cmp.Diff(a, b)
	}
	sidecar := func(p cmp.Path) bool {
		field, ok := p.Last().(cmp.StructField)
		return ok && field.Name() == "Native"
	}
	failure := func(p cmp.Path) bool { return p.Last().Type() == reflect.TypeFor[error]() }
	return cmp.Diff(
		want, got,
		cmp.FilterPath(sidecar, cmp.Ignore()),
		cmp.FilterPath(failure, cmp.Comparer(func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) })),
		cmp.Comparer(bytes.Equal), // faster than byte by byte
	)
}
