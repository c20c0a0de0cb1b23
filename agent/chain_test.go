package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/oracle/strictupstream"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/targets"
)

// linkServer is a server of one dialect that answers with its name and the number of the
// request, unless it is down. It refuses requests that the vendor's server refuses.
type linkServer struct {
	name, url string
	down      bool
	sent      []string // the texts of each request, as "q1|a1|q2"
}

func newLink(t *testing.T, c dialect.Codec, name string) *linkServer {
	t.Helper()
	l := &linkServer{name: name}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if l.down {
			http.Error(w, `{"type":"error","error":{"type":"not_found_error","code":"model_not_found","message":"model: not found"}}`, http.StatusNotFound)
			return
		}
		if refused := strictupstream.Judge(c.Dialect(), "", r.Header, body); refused != nil {
			t.Errorf("%s refuses %s: %+v", name, body, refused)
		}
		req, _, err := c.DecodeRequest(body, dialect.DecodeOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		var texts []string
		for i := range req.Messages {
			texts = append(texts, req.Messages[i].Text())
		}
		l.sent = append(l.sent, strings.Join(texts, "|"))
		resp := textResponse(fmt.Sprint(name, len(l.sent)))
		resp.ID, resp.Model, resp.Output[0].Status = "id", "m", codes.StatusComplete
		if !bytes.Contains(body, []byte(`"stream":true`)) {
			out, err := c.EncodeResponse(resp, dialect.EncodeOptions{})
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(out.Body)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		enc := c.NewStreamEncoder(dialect.EncodeOptions{})
		var out []byte
		for _, ev := range eventsOf(resp) {
			if out, err = enc.Encode(out, ev); err != nil {
				t.Error(err)
			}
		}
		if out, err = enc.Close(out); err != nil {
			t.Error(err)
		}
		_, _ = w.Write(out)
	}))
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

func compacting(more string) map[string]json.RawMessage {
	return map[string]json.RawMessage{extension.CompactName: json.RawMessage(`{"on_save":true,"keep":2` + more + `}`)}
}

// prompt runs an agent once, whole or streamed.
func prompt(ctx context.Context, a agent.Agent, text string, streams bool, opts ...agent.Option) (*agent.Result, error) {
	if streams {
		return a.Stream(ctx, text, opts...).Collect()
	}
	return a.Run(ctx, text, opts...)
}

func TestX9_EachLinkOfAChainHasItsOwnNativeHistory(t *testing.T) {
	for _, streams := range []bool{false, true} {
		t.Run(fmt.Sprintf("streams=%t", streams), func(t *testing.T) {
			t.Setenv("FIRST_KEY", "k")
			a, b := newLink(t, anthropic.Codec{}, "a"), newLink(t, openaichat.Codec{}, "b")
			config := &provider.Config{Providers: map[string]provider.Settings{
				"first":  {Type: "anthropic", BaseURL: a.url, APIKeyEnv: []string{"FIRST_KEY"}, Extensions: compacting("")},
				"second": {Type: "compatible", BaseURL: b.url, Extensions: compacting("")},
			}}
			m, err := config.Open("first/claude-x,second/m")
			if err != nil {
				t.Fatal(err)
			}
			store := &session.Memory{}
			s := must[*session.Session](t)(session.Create(t.Context(), store, session.Info{ID: "s"}))
			for i, down := range []bool{false, true, false, false, true, true} {
				if i == 4 { // another process finds the histories of the links
					s = must[*session.Session](t)(session.Open(t.Context(), store, "s"))
				}
				a.down = down
				res := must[*agent.Result](t)(prompt(t.Context(), agent.Agent{Model: m}, fmt.Sprint("q", i+1), streams, agent.In(s)))
				if want := map[bool]string{false: "first/claude-x", true: "second/m"}[down]; res.Model != want {
					t.Fatalf("turn %d: %s responded", i+1, res.Model)
				}
			}
			// Compaction begins with the fifth message that a model would get: more than
			// twice as many as it keeps.
			if want := []string{"q1", "q1|a1|q2|b1|q3", "q3|a2|q4"}; !slices.Equal(a.sent, want) {
				t.Errorf("the first link was sent %q, want %q", a.sent, want)
			}
			if want := []string{"q1|a1|q2", "q2|b1|q3|a2|q4|a3|q5", "q5|b2|q6"}; !slices.Equal(b.sent, want) {
				t.Errorf("the second link was sent %q, want %q", b.sent, want)
			}
			if messages, _, err := s.Load(t.Context()); err != nil || len(messages) != 12 {
				t.Errorf("%d messages are stored, %v", len(messages), err)
			}
		})
	}
}

// markingExtension is an extension that puts a message before the native history of its model.
type markingExtension struct{ text string }

func (markingExtension) Info() extension.Info { return extension.Info{Name: "mark"} }

func (m markingExtension) Actions(extension.Env) []extension.Action {
	return []extension.Action{{ID: "mark", Triggers: []string{extension.BeforeSave}, Run: func(_ context.Context, in extension.ActionInput) (extension.ActionResult, error) {
		native, err := in.Runtime.Encode([]dragoman.Message{dragoman.UserText(m.text), dragoman.AssistantText("yes")})
		if err != nil || len(in.Native) != 2 {
			return extension.ActionResult{}, err
		}
		return extension.ActionResult{Native: slices.Concat(native, in.Native)}, nil
	}}}
}

func TestX9_NoLinkOfAChainIsSentTheNativeHistoryOfAnother(t *testing.T) {
	t.Setenv("FIRST_KEY", "k")
	a, b := newLink(t, anthropic.Codec{}, "a"), newLink(t, openaichat.Codec{}, "b")
	marked := func(c dialect.Codec, l *linkServer) *provider.Client {
		set, err := extension.NewSet(markingExtension{"only for " + l.name})
		if err != nil {
			t.Fatal(err)
		}
		return &provider.Client{Name: l.name, Codec: c, BaseURL: l.url, Model: "m", Extensions: provider.Extensions{Set: set}}
	}
	inner := &provider.Chain{Links: []provider.Link{{Name: "b", Model: marked(openaichat.Codec{}, b)}}}
	chain := &provider.Chain{Links: []provider.Link{{Name: "a", Model: marked(anthropic.Codec{}, a)}, {Name: "inner", Model: inner}}}
	s := newSession(t)
	for i, down := range []bool{false, true, false, true} {
		a.down = down
		must[*agent.Result](t)(agent.Agent{Model: chain}.Run(t.Context(), fmt.Sprint("q", i+1), agent.In(s)))
	}
	if want := []string{"q1", "only for a|yes|q1|a1|q2|b1|q3"}; !slices.Equal(a.sent, want) {
		t.Errorf("a was sent %q, want %q", a.sent, want)
	}
	if want := []string{"q1|a1|q2", "q1|a1|q2|b1|q3|a2|q4"}; !slices.Equal(b.sent, want) {
		t.Errorf("b was sent %q, want %q", b.sent, want)
	}
}

// The agent's Compact function gets the messages for each link, once in each turn.
func TestX9_CompactSeesNativeHistoryOfCalledLink(t *testing.T) {
	t.Setenv("FIRST_KEY", "k")
	a, b := newLink(t, anthropic.Codec{}, "a"), newLink(t, openaichat.Codec{}, "b")
	config := &provider.Config{Providers: map[string]provider.Settings{
		"first":  {Type: "anthropic", BaseURL: a.url, APIKeyEnv: []string{"FIRST_KEY"}, Extensions: compacting("")},
		"second": {Type: "compatible", BaseURL: b.url},
	}}
	m, err := config.Open("first/claude-x,second/m")
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t)
	var seen []int
	play := agent.Agent{Model: m, Compact: func(_ context.Context, ms []dragoman.Message) ([]dragoman.Message, error) {
		seen = append(seen, len(ms))
		return ms, nil
	}}
	for i := range 3 {
		must[*agent.Result](t)(play.Run(t.Context(), fmt.Sprint("q", i+1), agent.In(s)))
	}
	a.down = true
	must[*agent.Result](t)(play.Run(t.Context(), "q4", agent.In(s)))
	if want := []int{1, 3, 3, 3, 7}; !slices.Equal(seen, want) {
		t.Errorf("Compact got %v messages, want %v", seen, want)
	}
	failing := agent.Agent{Model: m, Compact: func(context.Context, []dragoman.Message) ([]dragoman.Message, error) {
		return nil, errors.New("no room")
	}}
	asked := len(a.sent) + len(b.sent)
	if _, err := failing.Run(t.Context(), "q5", agent.In(s)); err == nil || !strings.Contains(err.Error(), "Compact: no room") || len(a.sent)+len(b.sent) != asked {
		t.Errorf("%v, %d requests more", err, len(a.sent)+len(b.sent)-asked)
	}
}

// A link that accepts no output schema gets instructions, and the others get the schema.
func TestChainLinksGetOutputFormatTheyAccept(t *testing.T) {
	type fruit struct {
		Name string `json:"name"`
	}
	down := &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "no capacity"}
	first, second := clientOf(openaichat.Codec{}, down), clientOf(openaichat.Codec{}, textResponse(`{"name":"fig"}`))
	second.Override = func(c *targets.Capabilities) { c.NoStructuredOutput = true }
	chain := &provider.Chain{Links: []provider.Link{{Name: "first", Model: first}, {Name: "second", Model: second}}}
	got, _, err := agent.Generate[fruit](t.Context(), agent.Agent{Model: chain, Instructions: "Be brief."}, "a fruit")
	if err != nil || got.Name != "fig" {
		t.Fatalf("%+v %v", got, err)
	}
	if req := first.asked[0]; req.Output == nil || len(req.Instructions) != 1 {
		t.Errorf("the first link got %+v", req)
	}
	if req := second.asked[0]; req.Output != nil || len(req.Instructions) != 2 || len(req.Messages) != 1 {
		t.Errorf("the second link got %+v", req)
	}
}
