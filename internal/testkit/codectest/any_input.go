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

// Untold reports whether a request is read without a word that its native form is
// not kept.
func Untold(c dialect.Codec, body []byte) bool {
	_, rep, _ := c.DecodeRequest(body, dialect.DecodeOptions{})
	return !slices.ContainsFunc(rep.Losses, func(l dragoman.Loss) bool {
		return strings.Contains(l.Detail, "native form is not kept")
	})
}

// Empty reports whether a codec refused a request because its body would have no message.
func Empty(err error) bool {
	return errors.Is(err, dragoman.ErrInvalid) && strings.Contains(err.Error(), "at least one message is required")
}

// AnyRequest checks what must hold of whatever is sent as a request: it is
// refused with a DecodeError, or passed on byte for byte, and what is built of
// it can be read. It returns the request and what was read of it written anew;
// nil where there is none.
func AnyRequest(t *testing.T, c dialect.Codec, body []byte) (req, back *dragoman.Request) {
	t.Helper()
	req, _, err := c.DecodeRequest(body, dialect.DecodeOptions{})
	if req == nil {
		t.Fatal("no request")
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
		passedOn(t, body, same, err)
	}
	built, err := c.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
	if Empty(err) {
		return req, nil // a server of this dialect may accept fields that we do not know
	}
	if err != nil {
		if !errors.Is(err, dragoman.ErrUnsupported) || req.ToolChoice == nil {
			t.Fatal(err)
		}
		return req, nil // a choice of a tool that is not there
	}
	sound(t, built.Body)
	if back, _, err = c.DecodeRequest(built.Body, dialect.DecodeOptions{}); err != nil {
		t.Fatalf("what we build cannot be read: %v\n%s", err, built.Body)
	}
	return req, back
}

// AnyResponse is to responses what [AnyRequest] is to requests. No call may
// run that must not, as it came and as it is written anew.
func AnyResponse(t *testing.T, c dialect.Codec, body []byte) (resp, back *dragoman.Response) {
	t.Helper()
	resp, _, err := c.DecodeResponse(body, dialect.DecodeOptions{Seed: "s"})
	if resp == nil {
		t.Fatal("no response")
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
		passedOn(t, body, same, err)
	}
	built, err := c.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		t.Fatal(err)
	}
	sound(t, built.Body)
	back, _, err = c.DecodeResponse(built.Body, dialect.DecodeOptions{})
	if err != nil {
		if resp.Error == nil {
			t.Fatalf("what we build cannot be read: %v\n%s", err, built.Body)
		}
		return resp, nil // a body that is an error
	}
	if resp.Error == nil && !resp.Stop.Reason.Runs() && back.Stop.Reason.Runs() && len(back.ToolCalls()) > 0 {
		t.Fatalf("calls may run again: %+v became %+v\n%s", resp.Stop, back.Stop, built.Body)
	}
	return resp, back
}

// mayAnswer reports whether a body may have the field of an answer, in whatever spelling.
// Beside an error, no client may see one.
func mayAnswer(body []byte, field string) bool {
	return bytes.Contains(body, []byte(`\u`)) || bytes.Contains(bytes.ToLower(body), []byte(`"`+strings.ToLower(field)+`"`))
}

func refused(t *testing.T, err error) {
	t.Helper()
	var de *dragoman.DecodeError
	if !errors.As(err, &de) {
		t.Fatalf("%v is no DecodeError", err)
	}
}

func passedOn(t *testing.T, body []byte, same dialect.Encoded, err error) {
	t.Helper()
	if err != nil || !bytes.Equal(same.Body, body) {
		t.Fatalf("not byte-identical: %v\ngot  %q\nwant %q", err, same.Body, body)
	}
}

func sound(t *testing.T, body []byte) {
	t.Helper()
	if !json.Valid(body) {
		t.Fatalf("no JSON: %q", body)
	}
}

// mayRun checks that no call may run that must not: with arguments that are
// none, or in an answer that broke or did not stop for its calls.
func mayRun(t *testing.T, resp *dragoman.Response, broke error) {
	t.Helper()
	for _, c := range resp.ToolCalls() {
		if c.Problem != nil {
			continue
		}
		if c.Payload == codes.PayloadObject && dragoman.CheckArguments(c.Arguments) != nil {
			t.Fatalf("may run with %q", c.Arguments)
		}
		if broke != nil || !resp.Stop.Reason.Runs() {
			t.Fatalf("may run after %q, %v", resp.Stop.Reason, broke)
		}
	}
}

// AnyStream checks what must hold of whatever is sent as a stream: its events
// are in order and the same however it is cut, no call may run that must not,
// and it can be re-encoded. It returns the events and the error of the decoder.
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

// Reencoded writes events in the dialect that they came in, and checks that the
// result is a stream in which no other call may run. It returns the stream.
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
			t.Fatalf("after re-encoding %s may run, before only %q\n%q", call, may, out)
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

// Written writes events and checks that what came of them is a valid stream.
func Written(t testing.TB, c dialect.Codec, evs []dragoman.Event, valid func(stream []byte) error) {
	t.Helper()
	out, _ := EncodeStream(t, c, dialect.EncodeOptions{}, evs)
	if err := valid(out); err != nil {
		t.Fatalf("%v\n%q", err, out)
	}
}

// Rebuilt writes events anew and checks that they are read again with the same
// text, but for notes that stand in for what has none.
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

// AnyError checks what must hold of whatever is sent as an error: it has a
// class, is written with a status that is one of an error, and says the same
// when it is read again. It returns the status that is written. answer is the field of
// responses that the error must not have.
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
	sound(t, out)
	if e.Native != nil && !bytes.Equal(out, body) && jsonwire.ReadsOneWay(body) && !mayAnswer(body, answer) {
		t.Fatalf("got  %q\nwant %q", out, body)
	}
	again := c.DecodeError(code, nil, out)
	if again.Native == nil {
		t.Fatalf("%q is no error body of ours", out)
	}
	if e.Message == "" || again.Message == e.Message {
		return code
	}
	if utf8.ValidString(e.Message) || strings.ToValidUTF8(again.Message, "") != strings.ToValidUTF8(e.Message, "") && !strings.Contains(again.Message, "\ufffd") {
		t.Fatalf("%q became %q in %s", e.Message, again.Message, out)
	}
	return code
}

// DiffEvents compares events, but for what they keep of their own wire form,
// and errors by what they say.
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
		cmp.Comparer(bytes.Equal), // not byte by byte
	)
}
