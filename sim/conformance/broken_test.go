package conformance_test

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/sim/conformance"
)

// brokenModel is a model with one defect.
type brokenModel struct {
	dragoman.Model
	// event changes the events of responses with a fault; nil changes nothing.
	event func(dragoman.Event) dragoman.Event
	// buffers reads the whole stream first, and deaf ignores cancellation.
	buffers, deaf bool
}

func (m brokenModel) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	if m.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	return m.Model.Generate(ctx, req)
}

func (m brokenModel) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		type result struct {
			ev  dragoman.Event
			err error
		}
		var held []result
		for ev, err := range m.Model.Stream(ctx, req) {
			if m.event != nil && ev != nil && strings.Contains(req.Model, "fault") {
				ev = m.event(ev)
			}
			if m.buffers {
				held = append(held, result{ev, err})
			} else if !yield(ev, err) {
				return
			}
		}
		for _, r := range held {
			if !yield(r.ev, r.err) {
				return
			}
		}
	}
}

// oneClass is a codec that does not classify errors.
type oneClass struct{ openaichat.Codec }

func (c oneClass) DecodeError(status int, h http.Header, body []byte) *dragoman.APIError {
	e := c.Codec.DecodeError(status, h, body)
	e.Class = dragoman.ErrorServer
	return e
}

func withoutText(ev dragoman.Event) dragoman.Event {
	switch e := ev.(type) {
	case *dragoman.PartDelta:
		if e.Kind == "text" {
			e.Text = ""
		}
	case *dragoman.PartEnd:
		if text, ok := e.Part.(*dragoman.Text); ok {
			text.Text = ""
		}
	}
	return ev
}

// brokenSuites are suites that must fail in a test, with a text.
func brokenSuites() map[string]struct {
	run        func(t *testing.T)
	test, text string
} {
	type suite = struct {
		run        func(t *testing.T)
		test, text string
	}
	model := func(m brokenModel) func(t *testing.T) {
		return conformance.Model{Codec: openaichat.Codec{}, Open: func(_ *testing.T, url string) dragoman.Model {
			m.Model = &provider.Client{Name: "sim", BaseURL: url + "/v1", Retry: provider.Retry{Max: -1}}
			return m
		}}.Run
	}
	var codec dialect.Codec = oneClass{}
	return map[string]suite{
		"errors of one class": {conformance.Dialect{Codec: codec, Path: at("/v1/chat/completions")}.Run, "errors_of_each_class/whole", "want the class"},
		"text lost in faults": {model(brokenModel{event: withoutText}), "faults/stream/c3", "I will look"},
		"stops lost in faults": {model(brokenModel{event: func(ev dragoman.Event) dragoman.Event {
			if end, ok := ev.(*dragoman.ResponseEnd); ok {
				end.Stop.Reason = dragoman.StopEnd
			}
			return ev
		}}), "faults/stream/c3", "stop reason"},
		"streams are buffered":    {model(brokenModel{buffers: true}), "cancellation/stream", "canceled"},
		"cancellation is ignored": {model(brokenModel{deaf: true}), "cancellation/whole", "did not notice"},
	}
}

// The suites run in another process, because a failure there is what is wanted here.
func TestZ4_IncorrectModelsAreFound(t *testing.T) {
	const variable = "CONFORMANCE_BROKEN"
	suites := brokenSuites()
	if name := os.Getenv(variable); name != "" {
		suites[name].run(t)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(suites)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := suites[name]
			path := "^TestZ4_IncorrectModelsAreFound$/" + strings.ReplaceAll(s.test, "/", "$/^") + "$"
			cmd := exec.Command(os.Args[0], "-test.run", path, "-test.timeout", "1m")
			cmd.Env = append(os.Environ(), variable+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "/"+s.test) || !strings.Contains(string(out), s.text) || strings.Contains(string(out), "panic:") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
