package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/targets"
)

var codecs = []dialect.Codec{anthropic.Codec{}, bedrock.Codec{}, gemini.Codec{}, ollama.Codec{}, openaichat.Codec{}, openairesponses.Codec{}, cohere.Codec{}}

// wireModel is a model that has a wire and answers with a script.
type wireModel struct {
	w       modelcall.Wire
	answers []string
	asked   []*dragoman.Request
}

func (m *wireModel) Generate(_ context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	m.asked = append(m.asked, req)
	if len(m.answers) == 0 {
		return nil, errors.New("the model has no script")
	}
	text := m.answers[0]
	m.answers = m.answers[1:]
	return &dragoman.Response{Output: []dragoman.Message{dragoman.AssistantText(text)}, Stop: dragoman.Stop{Reason: dragoman.StopEnd}}, nil
}

func (m *wireModel) Wire(context.Context, string) (modelcall.Wire, error) { return m.w, nil }

func (*wireModel) Stream(context.Context, *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return nil
}

func on(t testing.TB, c dialect.Codec, extensions ...extension.Extension) *wireModel {
	t.Helper()
	set, err := extension.NewSet(extensions...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := set.Resolve(nil, extension.Switches{})
	if err != nil {
		t.Fatal(err)
	}
	return &wireModel{w: modelcall.Wire{Codec: c, Target: targets.Target{Dialect: c.Dialect(), Provider: "p", Scope: "s", Model: "m"}, Extensions: r}}
}

func exchange(ask, id, answer string) []dragoman.Message {
	return []dragoman.Message{
		dragoman.UserText(ask),
		{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{
			&dragoman.Text{Text: "looking"},
			&dragoman.ToolCall{ID: id + "1", Name: "f", Arguments: "{}"}, &dragoman.ToolCall{ID: id + "2", Name: "g", Arguments: "{}"},
		}},
		dragoman.ToolResults(
			&dragoman.ToolResult{CallID: id + "1", Name: "f", Content: []dragoman.Part{&dragoman.Text{Text: "1"}}},
			&dragoman.ToolResult{CallID: id + "2", Name: "g", Content: []dragoman.Part{&dragoman.Text{Text: "2"}}}),
		dragoman.AssistantText(answer),
	}
}

func save(t testing.TB, s *session.Session, messages ...dragoman.Message) {
	t.Helper()
	if err := s.Save(t.Context(), messages, nil); err != nil {
		t.Fatal(err)
	}
}

func created(t testing.TB, store session.Store) *session.Session {
	t.Helper()
	s, err := session.Create(t.Context(), store, session.Info{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// forWire returns a short form of the messages for a wire.
func forWire(t testing.TB, s *session.Session, w *wireModel) string {
	t.Helper()
	messages, err := s.MessagesFor(t.Context(), w.w.Target.Origin(), w.w.Codec.Limits().Replay.Messages)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range messages {
		if text := messages[i].Text(); text != "" && text != "looking" {
			out = append(out, text)
		}
	}
	return strings.Join(out, " ")
}

// body returns the request that a wire gets.
func body(t testing.TB, s *session.Session, w *wireModel) string {
	t.Helper()
	messages, err := s.MessagesFor(t.Context(), w.w.Target.Origin(), w.w.Codec.Limits().Replay.Messages)
	if err != nil {
		t.Fatal(err)
	}
	req, _, err := history.Normalize(&dragoman.Request{Model: "m", Messages: messages}, history.Options{Target: w.w.Target, Limits: w.w.Codec.Limits()})
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.w.Codec.EncodeRequest(req, dialect.EncodeOptions{Target: w.w.Target})
	if err != nil {
		t.Fatal(err)
	}
	return string(out.Body)
}

func TestS5_X9_CompactedHistoryServesOnlyItsOrigin(t *testing.T) {
	for i, c := range codecs {
		t.Run(string(c.Dialect()), func(t *testing.T) {
			store := &session.Memory{}
			s := created(t, store)
			save(t, s, dragoman.SystemText("sys"))
			save(t, s, exchange("q1", "a", "r1")...)
			save(t, s, exchange("q2", "b", "r2")...)
			before := s.Head()
			w, other := on(t, c, extension.Compact{}), on(t, codecs[(i+1)%len(codecs)])
			whole := body(t, s, other)
			compact := session.Action{Extension: "dragoman.compact", ID: extension.CompactID, Params: json.RawMessage(`{"keep":3}`)}
			if err := s.Act(t.Context(), w, compact); err != nil {
				t.Fatal(err)
			}
			save(t, s, exchange("q3", "c", "r3")...)
			reopened, err := session.Open(t.Context(), store, s.ID())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []*session.Session{s, reopened} {
				if got := forWire(t, s, w); got != "sys q2 r2 q3 r3" {
					t.Error(got)
				}
				if got := forWire(t, s, other); got != "sys q1 r1 q2 r2 q3 r3" {
					t.Errorf("another origin: %s", got)
				}
				if messages, _, err := s.Load(t.Context()); err != nil || len(messages) != 13 {
					t.Errorf("the stored conversation changed: %d messages, %v", len(messages), err)
				}
			}
			if b := body(t, s, w); strings.Contains(b, "q1") || !strings.Contains(b, "q2") || !strings.Contains(b, "sys") {
				t.Error(b)
			}
			// Compact again, from the compacted history.
			if err := s.Act(t.Context(), w, compact); err != nil {
				t.Fatal(err)
			}
			if got := forWire(t, s, w); got != "sys q3 r3" {
				t.Error(got)
			}
			meta, err := s.Metadata(t.Context())
			if err != nil || !strings.Contains(string(meta["dragoman.compact"]), "dropped") {
				t.Errorf("%s %v", meta, err)
			}
			// A branch has it as the session had it there; a rewind to before it removes it.
			b, err := s.Branch(t.Context(), s.Head(), session.Info{})
			if err != nil {
				t.Fatal(err)
			}
			if got := forWire(t, b, w); got != "sys q3 r3" {
				t.Error(got)
			}
			if err := s.Rewind(t.Context(), before+5); err != nil { // the first compaction, q3
				t.Fatal(err)
			}
			if got := forWire(t, s, w); !strings.HasPrefix(got, "sys q2 r2 q3") {
				t.Errorf("rewound to the first compaction: %s", got)
			}
			if err := s.Rewind(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			if got := forWire(t, s, w); got != "sys q1 r1 q2 r2" {
				t.Errorf("rewound: %s", got)
			}
			if body(t, s, other) != whole {
				t.Error("another origin gets other bytes")
			}
		})
	}
}

// A caller that has loaded the conversation gets the replacement, also one that was written
// after the first call, by this writer or before the session was opened.
func TestS5_InsteadReturnsReplacement(t *testing.T) {
	store := &session.Memory{}
	s := created(t, store)
	save(t, s, exchange("q1", "a", "r1")...)
	save(t, s, exchange("q2", "b", "r2")...)
	w := on(t, anthropic.Codec{}, extension.Compact{Keep: 2})
	instead := func(s *session.Session) int {
		t.Helper()
		ms, _, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.MessagesInPlaceOf(t.Context(), ms, w.w.Target.Origin(), w.w.Codec.Limits().Replay.Messages)
		if err != nil {
			t.Fatal(err)
		}
		same, err := s.MessagesFor(t.Context(), w.w.Target.Origin(), w.w.Codec.Limits().Replay.Messages)
		if err != nil || len(same) != len(out) {
			t.Errorf("%d messages, and %d without a replacement: %v", len(out), len(same), err)
		}
		return len(ms) - len(out)
	}
	if n := instead(s); n != 0 {
		t.Errorf("nothing was replaced, but %d messages are missing", n)
	}
	if err := s.Act(t.Context(), w, session.Action{Extension: "dragoman.compact", ID: extension.CompactID}); err != nil {
		t.Fatal(err)
	}
	again, err := session.Open(t.Context(), store, s.ID())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*session.Session{s, again, again} {
		if n := instead(s); n == 0 {
			t.Error("the whole conversation is sent")
		}
	}
}

// A history that was edited outside is not the one that was replaced.
func TestS5_NativeHistoryIsDroppedAfterEdits(t *testing.T) {
	store := &session.Memory{}
	s := created(t, store)
	save(t, s, exchange("q1", "a", "secret")...)
	save(t, s, exchange("q2", "b", "r2")...)
	w := on(t, anthropic.Codec{}, extension.Compact{Keep: 2})
	if err := s.Act(t.Context(), w, session.Action{Extension: "dragoman.compact", ID: extension.CompactID}); err != nil {
		t.Fatal(err)
	}
	if got := forWire(t, s, w); got != "q2 r2" {
		t.Fatal(got)
	}
	var b strings.Builder
	if err := session.Export(t.Context(), store, s.ID(), &b); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Import(t.Context(), store, strings.NewReader(strings.ReplaceAll(b.String(), "secret", "redacted")), "edited"); err != nil {
		t.Fatal(err)
	}
	edited, err := session.Open(t.Context(), store, "edited")
	if err != nil {
		t.Fatal(err)
	}
	if got := forWire(t, edited, w); got != "q1 redacted q2 r2" {
		t.Error(got)
	}
}

// acting is an extension with one action.
type acting struct {
	run  func(in extension.ActionInput) (extension.ActionResult, error)
	when []string
}

func (acting) Info() extension.Info { return extension.Info{Name: "acting"} }

func (a acting) Actions(extension.Env) []extension.Action {
	return []extension.Action{{ID: "act", Triggers: a.when, Run: func(_ context.Context, in extension.ActionInput) (extension.ActionResult, error) {
		return a.run(in)
	}}}
}

func TestX9_ActionMayWriteItsOwnNativeMessages(t *testing.T) {
	summary := map[dragoman.Dialect]string{
		dialectname.Anthropic:       `{"role":"user","content":[{"type":"text","text":"summary"}], "odd": 1.0}`,
		dialectname.Bedrock:         `{"role":"user","content":[{"text":"summary"}]}`,
		dialectname.Gemini:          `{"role":"user","parts":[{"text":"summary"}]}`,
		dialectname.Ollama:          `{"role":"user","content":"summary"}`,
		"cohere.chat":               `{"role":"user","content":"summary"}`,
		dialectname.OpenAIChat:      `{"role":"user","content":"summary", "odd": 1.0}`,
		dialectname.OpenAIResponses: `{"type":"message","role":"user","content":[{"type":"input_text","text":"summary"}]}`,
	}
	for _, c := range codecs {
		t.Run(string(c.Dialect()), func(t *testing.T) {
			s := created(t, &session.Memory{})
			save(t, s, exchange("q1", "a", "r1")...)
			save(t, s, exchange("q2", "b", "r2")...)
			native := json.RawMessage(summary[c.Dialect()])
			w := on(t, c, acting{run: func(in extension.ActionInput) (extension.ActionResult, error) {
				if len(in.Session.Messages()) != len(in.Native) {
					t.Errorf("%d messages, %d native ones", len(in.Session.Messages()), len(in.Native))
				}
				if in.Origin != (dragoman.Origin{Dialect: c.Dialect(), Provider: "p", Scope: "s", Model: "m"}) || in.Session.ID() != s.ID() {
					t.Errorf("%+v", in.Origin)
				}
				half := len(in.Native) / 2
				return extension.ActionResult{Native: append([]json.RawMessage{native}, in.Native[half:]...)}, nil
			}})
			if err := s.Act(t.Context(), w, session.Action{Extension: "acting", ID: "act"}); err != nil {
				t.Fatal(err)
			}
			if got := forWire(t, s, w); got != "summary q2 r2" {
				t.Error(got)
			}
			if got := body(t, s, w); !strings.Contains(got, "summary") || strings.Contains(string(native), "odd") && !strings.Contains(got, `"odd": 1.0`) {
				t.Errorf("the bytes differ from those of the action: %s", got)
			}
			bad := on(t, c, acting{run: func(extension.ActionInput) (extension.ActionResult, error) {
				return extension.ActionResult{Native: []json.RawMessage{json.RawMessage(`{"role":`)}}, nil
			}})
			head := s.Head()
			if err := s.Act(t.Context(), bad, session.Action{Extension: "acting", ID: "act"}); !errors.Is(err, session.ErrInvalid) {
				t.Error(err)
			}
			if s.Head() != head {
				t.Error("something was written")
			}
		})
	}
}

func TestX9_ActionsRunBeforeASaveAndSeeTheirContext(t *testing.T) {
	s := created(t, &session.Memory{})
	if err := s.SetMetadata(t.Context(), json.RawMessage(`{"title":"T","gone":1}`)); err != nil {
		t.Fatal(err)
	}
	ran := 0
	a := acting{when: []string{extension.BeforeSave}, run: func(in extension.ActionInput) (extension.ActionResult, error) {
		ran++
		c := in.Context
		if !strings.Contains(string(c["lifecycle"]), "session_save_prepare") || !strings.Contains(string(c["session"]), s.ID()) ||
			string(c["config"]) != `{"a":1}` || string(c["app"]) != `"app"` || string(c["base_config"]) != `"base"` || string(c["mine"]) != `2` || string(in.Session.Metadata()["title"]) != `"T"` {
			t.Errorf("%s %s", c, in.Session.Metadata())
		}
		return extension.ActionResult{Metadata: json.RawMessage(`{"seen":true,"gone":null}`)}, nil
	}}
	w := on(t, openaichat.Codec{}, a)
	w.w.Config = map[string]json.RawMessage{"acting": json.RawMessage(`{"a":1}`)}
	var log strings.Builder
	s.ActionContext = session.ActionContext{
		App: json.RawMessage(`"app"`), Base: json.RawMessage(`"base"`), Log: slog.New(slog.NewTextHandler(&log, nil)),
		Layers: map[string]json.RawMessage{"mine": json.RawMessage(`2`), "session": json.RawMessage(`"forged"`)},
	}

	if err := s.BeforeSave(t.Context(), w, "", nil); err != nil || ran != 1 { // also for an empty conversation
		t.Error(err, ran)
	}
	if !strings.Contains(log.String(), "reserved") {
		t.Error(log.String())
	}
	meta, err := s.Metadata(t.Context())
	if err != nil || len(meta) != 2 || string(meta["seen"]) != "true" {
		t.Errorf("%s %v", meta, err)
	}
	waiting := exchange("q", "a", "r")[:2]
	save(t, s, waiting...)
	if err := s.BeforeSave(t.Context(), w, "", nil); err != nil || ran != 1 {
		t.Errorf("calls wait for their results: %v, ran %d times", err, ran)
	}
	var unsettled *history.UnsettledError
	if err := s.Act(t.Context(), w, session.Action{Extension: "acting", ID: "act"}); !errors.As(err, &unsettled) {
		t.Error(err)
	}
	if err := s.Act(t.Context(), &wireModel{}, session.Action{}); !errors.Is(err, session.ErrInvalid) {
		t.Error(err)
	}
	if err := created(t, &session.Memory{}).Act(t.Context(), w, session.Action{Extension: "acting", ID: "no"}); !errors.Is(err, extension.ErrNoAction) {
		t.Error(err)
	}
}
