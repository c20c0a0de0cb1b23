package provider_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/provider/internal/servers"
)

// Compressed data arrives in larger chunks than events, so streams are requested uncompressed.
func TestX13_StreamsAreNotCompressed(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		s := serve(t, codec, respond(textResponse("Yes.")))
		c := s.client(&provider.Client{})
		if _, err := dragoman.Collect(c.Stream(t.Context(), newRequest())); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Generate(t.Context(), newRequest()); err != nil {
			t.Fatal(err)
		}
		got := s.requests()
		if h := got[0].header.Get("Accept-Encoding"); h != "identity" {
			t.Errorf("a stream accepts %q", h)
		}
		if h := got[1].header.Get("Accept-Encoding"); h != "gzip" {
			t.Errorf("a whole answer accepts %q", h)
		}
	})
}

// endlessBody is a body that never ends.
type endlessBody struct {
	io.Reader
	ctx     context.Context
	waiting chan struct{}
}

func (l *endlessBody) Read(p []byte) (int, error) {
	if n, _ := l.Reader.Read(p); n > 0 {
		return n, nil
	}
	l.waiting <- struct{}{}
	<-l.ctx.Done()
	return 0, l.ctx.Err()
}

func (*endlessBody) Close() error { return nil }

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// After the end of a stream, the wait for the connection to close is short.
func TestX13_WaitForTheStreamsEndIsShort(t *testing.T) {
	const all = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	waiting := make(chan struct{}, 1)
	clock := newClock()
	c := provider.OnClock(clock, &provider.Client{Model: "m", HTTP: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: &endlessBody{strings.NewReader(all), r.Context(), waiting}, Request: r}, nil
	})}})
	done := make(chan error, 1)
	go func() {
		resp, err := dragoman.Collect(c.Stream(context.Background(), newRequest()))
		if err == nil && resp.Text() != "Yes." {
			t.Errorf("%q", resp.Text())
		}
		done <- err
	}()
	<-waiting
	clock.advance(time.Second)
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits on")
	}
}

// contributedAdapter is a contribution that writes tools in its own form.
type contributedAdapter string

func (contributedAdapter) Kind() string          { return codes.SchemaObject }
func (contributedAdapter) From() dragoman.Format { return "acme.tool" }
func (contributedAdapter) To() dragoman.Format   { return toolformat.ChatFunction }
func (w contributedAdapter) Adapt(dragoman.AdapterInput) (json.RawMessage, dragoman.Report, error) {
	return json.RawMessage(`{"type":"function","function":{"name":"look","by":"` + string(w) + `"}}`), dragoman.Report{}, nil
}

func contributes(who string) []dragoman.Contribution {
	return []dragoman.Contribution{{Schemas: []dragoman.SchemaAccessor{acmeTool{}}, Adapters: []dragoman.Adapter{contributedAdapter(who)}}}
}

type contributor struct{}

func (contributor) Info() extension.Info { return extension.Info{Name: "contributor"} }

func (contributor) Contribute(*extension.Exchange) []dragoman.Contribution {
	return contributes("extension")
}

// The configuration comes before extensions, and they before tools.
func TestR3_TheEarlierContributionWins(t *testing.T) {
	for _, tc := range []struct {
		config, extension, tool bool
		want                    string
	}{
		{true, true, true, "config"}, {false, true, true, "extension"}, {false, false, true, "tool"}, {true, false, true, "config"},
	} {
		s := serve(t, openaichat.Codec{}, respond(textResponse("Yes.")))
		c := s.client(&provider.Client{})
		req := newRequest()
		req.Tools = []dragoman.ToolSpec{{Source: &dragoman.ToolSource{Format: "acme.tool", JSON: json.RawMessage(`{"does":"look"}`)}}}
		if tc.config {
			c.Contributions = contributes("config")
		}
		if tc.extension {
			c.Extensions = extensions(t, contributor{})
		}
		if tc.tool {
			req.Contributions = contributes("tool")
		}
		if _, err := c.Generate(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if body := string(s.requests()[0].body); !strings.Contains(body, `"by":"`+tc.want+`"`) {
			t.Errorf("%+v: %s", tc, body)
		}
	}
}

// marker is an extension that marks the request when its tags turn it on.
type marker struct {
	name string
	tags []extension.Tag
}

func (m marker) Info() extension.Info { return extension.Info{Name: m.name, Requires: m.tags} }

func (m marker) Decorate(_ context.Context, x *extension.Exchange) error {
	return x.Payload.Set(m.name, true)
}

// Tools add tags: one for their presence, and one for each source format.
func TestX1_ToolsAddTags(t *testing.T) {
	mark := func(name string, tags ...extension.Tag) marker {
		return marker{name, tags}
	}
	e := extensions(t, mark("any", "tools"), mark("acme", "format:acme.tool"), mark("mine", "mine"))
	e.Tags = []extension.Tag{"mine"}
	s := serve(t, openaichat.Codec{}, respond(textResponse("Yes.")))
	none, some, acmes := newRequest(), newRequest(), newRequest()
	none.Tools = nil
	acmes.Tools = []dragoman.ToolSpec{{Source: &dragoman.ToolSource{Format: "acme.tool", JSON: json.RawMessage(`{"does":"look"}`)}}}
	acmes.Contributions = contributes("tool")
	for i, tc := range []struct {
		req  *dragoman.Request
		want string
	}{{none, "mine"}, {some, "any mine"}, {acmes, "any acme mine"}} {
		if _, err := s.client(&provider.Client{Extensions: e}).Generate(t.Context(), tc.req); err != nil {
			t.Fatal(err)
		}
		sent, err := extension.NewObject(s.requests()[i].body)
		if err != nil {
			t.Fatal(err)
		}
		var on []string
		for _, name := range []string{"any", "acme", "mine"} {
			if sent.Get(name) != nil {
				on = append(on, name)
			}
		}
		if got := strings.Join(on, " "); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

// partAdder adds a part to every response.
type partAdder struct{}

func (partAdder) Info() extension.Info { return extension.Info{Name: "adder"} }

func (partAdder) Finish(_ context.Context, _ *extension.Exchange, resp *dragoman.Response) error {
	resp.Output[0].Parts = append(resp.Output[0].Parts, &dragoman.Text{Text: "Added."})
	return nil
}

// A part that is added to an empty response gets a message.
func TestX3_PartAddedToAnEmptyResponseHasAMessage(t *testing.T) {
	s := serve(t, openaichat.Codec{}, func(_ *server, w http.ResponseWriter, _ *http.Request, _ received) {
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
	var start *dragoman.PartStart
	var whole dragoman.Collector
	for ev, err := range s.client(&provider.Client{Extensions: extensions(t, partAdder{})}).Stream(t.Context(), newRequest()) {
		if err != nil {
			t.Fatal(err)
		}
		whole.Add(ev)
		if p, ok := ev.(*dragoman.PartStart); ok {
			start = p
		}
	}
	resp, err := whole.Response()
	if err != nil || resp.Text() != "Added." || start == nil || start.Header == nil || resp.Output[0].Role != dragoman.RoleAssistant {
		t.Errorf("%v %+v, %+v", err, resp, start)
	}
}

// On a wire without ids, calls get ids that no other turn of the conversation has.
func TestSynthesizedIDsDifferBetweenTurns(t *testing.T) {
	const call = `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":{"city":"Oslo"}}}]},"done":true,"done_reason":"stop"}` + "\n"
	s := serve(t, ollama.Codec{}, func(_ *server, w http.ResponseWriter, _ *http.Request, _ received) { _, _ = io.WriteString(w, call) })
	forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
		c := s.client(&provider.Client{})
		req := newRequest()
		seen := map[string]bool{}
		for range 3 {
			resp, err := ask(c, req)
			if err != nil || len(resp.ToolCalls()) != 1 {
				t.Fatal(resp, err)
			}
			made := resp.ToolCalls()[0]
			if made.ID == "" || seen[made.ID] {
				t.Errorf("the id %q again", made.ID)
			}
			seen[made.ID] = true
			req.Messages = append(append(req.Messages, resp.Output...), dragoman.ToolResults(made.ResultText("4 °C")))
		}
	})
}

// Losses of extensions are reported with the others.
func TestR11_ExtensionLossesAreReported(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respond(textResponse("Yes.")))
	c := s.client(&provider.Client{Server: "lmstudio", Extensions: extensions(t, servers.All()...)})
	req := newRequest()
	req.Tools = append(req.Tools, dragoman.ToolSpec{Name: "other"})
	req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "other"}}}
	resp, err := c.Generate(t.Context(), req)
	if err != nil || !slices.ContainsFunc(resp.Losses.Losses, func(l dragoman.Loss) bool { return l.Path == "/tool_choice" && l.Kind == dragoman.Lowered }) {
		t.Errorf("%v %v", err, resp.Losses)
	}
}

// chunkReader returns one chunk per read.
type chunkReader struct{ pieces []string }

func (o *chunkReader) Read(p []byte) (int, error) {
	if len(o.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.pieces[0])
	o.pieces = o.pieces[1:]
	return n, nil
}

func (*chunkReader) Close() error { return nil }

// Held chunks keep their bytes, although the decoder reuses its buffer.
func TestX14_HeldChunksKeepTheirBytes(t *testing.T) {
	pieces := []string{
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n", "data: {\"choices\":[]}\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes.\"},\"finish_reason\":\"stop\"}]}\n\n", "data: [DONE]\n\n",
	}
	c := &provider.Client{Model: "m", Chunks: true, HTTP: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: &chunkReader{slices.Clone(pieces)}, Request: r}, nil
	})}}
	var got strings.Builder
	for ev, err := range c.Stream(t.Context(), newRequest()) {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := ev.(*dragoman.Chunk); ok {
			got.Write(c.Raw)
		}
	}
	if want := strings.Join(pieces[:3], ""); !strings.HasPrefix(got.String(), want) {
		t.Errorf("%q\nwant\n%q", got.String(), want)
	}
}
