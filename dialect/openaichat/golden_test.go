package openaichat_test

import (
	"bytes"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"golang.org/x/tools/txtar"
)

// TestGolden decodes the input of a client or a server, and encodes it again.
//
// Each file names the rule that it pins and has one input: request.json, response.json or
// stream.sse (each line is the data of an event). The other sections are generated: canonical
// (stored JSON, or one event per line), rebuilt (the wire form of the canonical value alone), and
// the losses of both directions. Unchanged input must be encoded to the same bytes, unless a loss
// reports why a response is not.
func TestGolden(t *testing.T) {
	codectest.Golden(t, func(t *testing.T, in txtar.File) (out []txtar.File) {
		add := func(name, text string) { out = append(out, codectest.Section(name, text)) }
		switch in.Name {
		case "request.json":
			goldenRequest(t, in.Data, add)
		case "response.json":
			goldenResponse(t, in.Data, add)
		case "stream.sse":
			goldenStream(t, in.Data, add)
		default:
			t.Fatalf("%s is not a known input", in.Name)
		}
		return out
	})
}

func goldenRequest(t *testing.T, body []byte, add func(name, text string)) {
	req, rep, err := codec.DecodeRequest(body, dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil || !bytes.Equal(same.Body, body) {
		t.Errorf("the unchanged request was encoded as\n%s\n%v", same.Body, err)
	}
	plain, _, err := codec.DecodeRequest(body, dialect.DecodeOptions{NoNative: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range plain.Tools {
		plain.Tools[i].Source = nil // it contains the bytes of the input
	}
	add("canonical", codectest.Indented(t, plain, " "))
	enc, err := codec.EncodeRequest(plain, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object(t, enc.Body)
	add("rebuilt", codectest.Indented(t, enc.Body, " "))
	add("losses", both(rep, enc.Report))
}

func goldenResponse(t *testing.T, body []byte, add func(name, text string)) {
	resp, rep, err := codec.DecodeResponse(body, dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	reencoded := strings.Contains(both(rep, dragoman.Report{}), "native form is not kept")
	if err != nil || bytes.Equal(same.Body, body) == reencoded {
		t.Errorf("the unchanged response was encoded as\n%s\n%v", same.Body, err)
	}
	plain, _, err := codec.DecodeResponse(body, dialect.DecodeOptions{NoNative: true})
	if err != nil {
		t.Fatal(err)
	}
	add("canonical", codectest.Indented(t, plain, " "))
	enc, err := codec.EncodeResponse(plain, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object(t, enc.Body)
	add("rebuilt", codectest.Indented(t, enc.Body, " "))
	add("losses", both(rep, enc.Report))
}

func goldenStream(t *testing.T, lines []byte, add func(name, text string)) {
	var body strings.Builder
	for line := range strings.Lines(string(lines)) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, ":") {
			body.WriteString(line + "\n\n")
		} else if line != "" {
			body.WriteString("data: " + line + "\n\n")
		}
	}
	d := decodeStream(t, dialect.DecodeOptions{NoNative: true}, body.String())
	var events []dragoman.Event
	for _, ev := range d.events {
		if ev.Type() == "chunk" {
			continue
		}
		events = append(events, ev)
	}
	add("canonical", codectest.EventLines(t, events))
	out, rep := encodeStream(t, dialect.EncodeOptions{StreamUsage: true}, events)
	if err := emitcheck.Order(dialectname.OpenAIChat, []byte(out)); err != nil {
		t.Errorf("a strict client refuses it: %v\n%s", err, out)
	}
	var rebuilt []string
	for _, c := range chunksOf(t, out) {
		if c != "[DONE]" {
			object(t, []byte(c))
		}
		rebuilt = append(rebuilt, c)
	}
	add("rebuilt", strings.Join(rebuilt, "\n"))
	losses := both(d.rep, rep)
	if d.feed != nil {
		losses += "closed with: " + d.feed.Error() + "\n"
	}
	add("losses", losses)
}

func both(decoding, encoding dragoman.Report) string {
	s := ""
	for _, l := range decoding.Losses {
		s += "decoding: " + l.String() + "\n"
	}
	for _, l := range encoding.Losses {
		s += "encoding: " + l.String() + "\n"
	}
	return s
}
