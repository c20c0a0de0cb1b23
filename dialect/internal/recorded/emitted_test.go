package recorded_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
	"github.com/dragoman-go/dragoman/targets"
)

// refused is a reason for which a strict client may refuse a response that we re-encode from a
// recorded one. A reason that no longer applies fails the test, so the list only shrinks.
type refused struct {
	dialect dragoman.Dialect // dialect that is written
	rule    string           // part of the text of emitcheck's error
	why     string
}

// refusedResponses lists the known reasons: first those that are decided, then those that a codec
// should fix.
var refusedResponses = []refused{
	{dialectname.Anthropic, "does not match ^[a-zA-Z0-9_-]+$", "decided: a response keeps the call id of its server, whatever characters it has, because clients send it back (interop.Registry.ForAnswer)"},
}

// TestStrictClientsAcceptReencodedResponses re-encodes every recorded response, whole or
// streamed, in each of the other dialects, as the gateway does, and checks it against the rules
// of the strictest clients of that dialect.
func TestStrictClientsAcceptReencodedResponses(t *testing.T) {
	known := &refusals{document: emitcheck.OpenResponses(t), seen: make([]int, len(refusedResponses))}
	complete := true
	for _, a := range apis() {
		complete = t.Run(a.File, func(t *testing.T) {
			for _, x := range traffic.Recorded(t, a.File) {
				body, kind := a.response(t, &x)
				if len(body) > maxJudged {
					continue
				}
				for _, out := range crosstest.Codecs {
					if out.Dialect() == a.Codec.Dialect() {
						continue
					}
					switch kind {
					case wholeResponse:
						known.whole(t, a, out, x.ID(), []byte(body))
					case streamResponse:
						known.stream(t, a, out, x.ID(), []byte(body), dialect.DecodeOptions{})
						known.stream(t, a, out, x.ID(), []byte(body), dialect.DecodeOptions{NoNative: true, DeltasOnly: true})
					}
				}
			}
			known.read++
		}) && complete
	}
	if known.read == len(apis()) && complete {
		known.report(t)
	}
}

// maxJudged is the largest response, in bytes, that the test re-encodes. Longer ones show nothing
// new and take as much time as all others together.
const maxJudged = 200_000

// refusals collects what strict clients refuse in all recorded responses.
type refusals struct {
	document *emitcheck.Document
	seen     []int // how often each known reason applies
	written  int
	read     int // files
}

// writing holds the options that the gateway uses to encode a response.
var writing = dialect.EncodeOptions{Seed: "recorded", Model: "m", StreamUsage: true, Target: targets.Target{Caps: targets.Capabilities{ReasoningField: "reasoning_content"}}}

func (r *refusals) whole(t *testing.T, in api, out dialect.Codec, id string, body []byte) {
	t.Helper()
	resp, _, err := in.Codec.DecodeResponse(body, dialect.DecodeOptions{})
	if err != nil || resp.Error != nil {
		return // the gateway reports it as an error
	}
	enc, err := out.EncodeResponse(resp, writing)
	if err == nil {
		err = emitcheck.Whole(out.Dialect(), 200, nil, enc.Body)
	}
	if err == nil && out.Dialect() == dialectname.OpenAIResponses {
		err = r.document.Whole(enc.Body)
	}
	r.note(t, out.Dialect(), id+", whole", err, enc.Body)
}

// stream re-encodes a stream. A stream that breaks is re-encoded up to the break, with the error.
func (r *refusals) stream(t *testing.T, in api, out dialect.Codec, id string, body []byte, o dialect.DecodeOptions) {
	t.Helper()
	enc, dec := out.NewStreamEncoder(writing), in.Codec.NewStreamDecoder(o)
	var written []byte
	failed := false
	feed := func(ev dragoman.Event) (err error) {
		_, is := ev.(*dragoman.StreamError)
		failed = failed || is
		written, err = enc.Encode(written, ev)
		return err
	}
	err := dec.Feed(body, feed)
	if err == nil {
		err = dec.Close(feed)
	}
	if err != nil && !failed {
		_ = feed(&dragoman.StreamError{Err: &dragoman.APIError{Class: dragoman.ErrorServer, Status: 502, Message: err.Error()}})
	}
	written, err = enc.Close(written)
	if err == nil {
		err = emitcheck.Stream(out.Dialect(), nil, written)
	}
	if err == nil && out.Dialect() == dialectname.OpenAIResponses {
		err = r.document.Stream(written)
	}
	r.note(t, out.Dialect(), id+", streamed", err, written)
}

func (r *refusals) note(t *testing.T, d dragoman.Dialect, id string, err error, body []byte) {
	t.Helper()
	r.written++
	if err == nil {
		return
	}
	for i, known := range refusedResponses {
		if known.dialect == d && strings.Contains(err.Error(), known.rule) {
			r.seen[i]++
			return
		}
	}
	if len(body) > 2000 {
		body = append(append(body[:1000:1000], " … "...), body[len(body)-1000:]...)
	}
	t.Errorf("%s: strict %s clients refuse the re-encoded response: %v\n%s", id, d, err, body)
}

func (r *refusals) report(t *testing.T) {
	t.Helper()
	t.Logf("%d responses written", r.written)
	for i, known := range refusedResponses {
		if r.seen[i] == 0 {
			t.Errorf("%s clients no longer refuse anything with %q (%s): remove the entry", known.dialect, known.rule, known.why)
			continue
		}
		t.Logf("%5d × %s: %s (%s)", r.seen[i], known.dialect, known.rule, known.why)
	}
}
