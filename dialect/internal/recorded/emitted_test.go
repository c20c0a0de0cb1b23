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

// refused is a reason for which a strict client may refuse what we write of a recorded
// answer. One that nothing is refused for any more fails the test: the list only shrinks.
type refused struct {
	dialect dragoman.Dialect // that is written
	rule    string           // a part of what the judge says
	why     string
}

// refusedAnswers are the reasons that are known: first what is decided, then what is to be
// mended in a codec.
var refusedAnswers = []refused{
	{dialectname.Anthropic, "does not match ^[a-zA-Z0-9_-]+$", "decided: the id of a call in an answer is the one its server gave, whatever its letters, as clients send it back (interop.Registry.ForAnswer)"},
}

// TestStrictClientsTakeWhatRecordedServersSaid writes every recorded answer, whole or
// streamed, in each of the other dialects, as a gateway does, and holds it against what
// the strictest clients of that dialect want.
func TestStrictClientsTakeWhatRecordedServersSaid(t *testing.T) {
	known := &refusals{document: emitcheck.OpenResponses(t), seen: make([]int, len(refusedAnswers))}
	complete := true
	for _, a := range apis() {
		complete = t.Run(a.File, func(t *testing.T) {
			for _, x := range traffic.Recorded(t, a.File) {
				body, kind := a.answer(t, &x)
				if len(body) > maxJudged {
					continue
				}
				for _, out := range crosstest.Codecs {
					if out.Dialect() == a.Codec.Dialect() {
						continue
					}
					switch kind {
					case wholeAnswer:
						known.whole(t, a, out, x.ID(), []byte(body))
					case streamAnswer:
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

// maxJudged bounds the answers that are written: what is longer holds nothing new, and
// takes the time of all others together.
const maxJudged = 200_000

// refusals are what strict clients refuse of all that was recorded.
type refusals struct {
	document *emitcheck.Document
	seen     []int // how often each of the known reasons holds
	written  int
	read     int // files
}

// writing is how a gateway writes an answer.
var writing = dialect.EncodeOptions{Seed: "recorded", Model: "m", StreamUsage: true, Target: targets.Target{Caps: targets.Capabilities{ReasoningField: "reasoning_content"}}}

func (r *refusals) whole(t *testing.T, in api, out dialect.Codec, id string, body []byte) {
	t.Helper()
	resp, _, err := in.Codec.DecodeResponse(body, dialect.DecodeOptions{})
	if err != nil || resp.Error != nil {
		return // which is told as an error
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

// stream tells one that cannot be read to its end up to where it breaks, and that it does.
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
	for i, known := range refusedAnswers {
		if known.dialect == d && strings.Contains(err.Error(), known.rule) {
			r.seen[i]++
			return
		}
	}
	if len(body) > 2000 {
		body = append(append(body[:1000:1000], " … "...), body[len(body)-1000:]...)
	}
	t.Errorf("%s, written for a client of %s, who refuses it: %v\n%s", id, d, err, body)
}

func (r *refusals) report(t *testing.T) {
	t.Helper()
	t.Logf("%d answers written", r.written)
	for i, known := range refusedAnswers {
		if r.seen[i] == 0 {
			t.Errorf("nothing is refused by clients of %s any more with %q (%s); remove it", known.dialect, known.rule, known.why)
			continue
		}
		t.Logf("%5d × %s: %s (%s)", r.seen[i], known.dialect, known.rule, known.why)
	}
}
