package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/sim"
)

// step is an extension with one action that runs before a save.
type step struct {
	name string
	run  func(in extension.ActionInput) (extension.ActionResult, error)
}

func (s step) Info() extension.Info { return extension.Info{Name: s.name} }

func (s step) Actions(extension.Env) []extension.Action {
	return []extension.Action{{ID: s.name, Triggers: []string{extension.BeforeSave}, Run: func(_ context.Context, in extension.ActionInput) (extension.ActionResult, error) {
		return s.run(in)
	}}}
}

// dropFirst is an action that drops the first exchange of two messages.
func dropFirst(in extension.ActionInput) (extension.ActionResult, error) {
	if len(in.Native) < 4 {
		return extension.ActionResult{}, nil
	}
	return extension.ActionResult{Native: in.Native[2:], Metadata: json.RawMessage(`{"dropped":true}`)}, nil
}

func pair(ask, answer string) []dragoman.Message {
	return []dragoman.Message{dragoman.UserText(ask), dragoman.AssistantText(answer)}
}

func TestX9_SavingAConnectedSessionRunsItsTriggers(t *testing.T) {
	s := created(t, &session.Memory{})
	w := on(t, openaichat.Codec{}, step{"drop", dropFirst})
	save(t, s, pair("q1", "r1")...)
	if err := s.Connect(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	save(t, s, pair("q2", "r2")...)
	if got := forWire(t, s, w); got != "q2 r2" {
		t.Errorf("the action did not see the messages that are saved: %s", got)
	}
	save(t, s, exchange("q3", "c", "r3")[:2]...) // calls wait for their results
	if err := s.Connect(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	save(t, s, exchange("q3", "c", "r3")[2:]...)
	if got := forWire(t, s, w); got != "q2 r2 q3 r3" {
		t.Errorf("disconnected: %s", got)
	}
	if messages, _, err := s.Load(t.Context()); err != nil || len(messages) != 8 {
		t.Errorf("%d messages, %v", len(messages), err)
	}
}

func TestX9_FailedTriggerIsLoggedAndMessagesAreSaved(t *testing.T) {
	s := created(t, &session.Memory{})
	var log strings.Builder
	s.ActionContext.Log = slog.New(slog.NewTextHandler(&log, nil))
	w := on(t, openaichat.Codec{}, step{"bad", func(extension.ActionInput) (extension.ActionResult, error) {
		return extension.ActionResult{}, errors.New("no luck")
	}})
	if err := s.Connect(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	save(t, s, pair("q1", "r1")...)
	if messages, _, err := s.Load(t.Context()); err != nil || len(messages) != 2 || !strings.Contains(log.String(), "no luck") {
		t.Errorf("%d messages, %v: %s", len(messages), err, log.String())
	}
	if err := s.BeforeSave(t.Context(), w, "", nil); err == nil {
		t.Error("BeforeSave hides the error of an action")
	}
}

func TestX9_SecondActionSeesResultOfFirst(t *testing.T) {
	var seen string
	look := step{"look", func(in extension.ActionInput) (extension.ActionResult, error) {
		var texts []string
		for _, m := range in.Session.Messages() {
			texts = append(texts, m.Text())
		}
		seen = fmt.Sprintf("%s, %d native, metadata %s", strings.Join(texts, " "), len(in.Native), in.Session.Metadata()["dropped"])
		return extension.ActionResult{Metadata: json.RawMessage(`{"looked":true}`)}, nil
	}}
	const want = "q2 r2, 2 native, metadata true"

	s := created(t, &session.Memory{})
	w := on(t, openaichat.Codec{}, step{"drop", dropFirst}, look)
	if err := s.Connect(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	save(t, s, append(pair("q1", "r1"), pair("q2", "r2")...)...)
	if seen != want {
		t.Errorf("before a save: %s", seen)
	}
	meta, err := s.Metadata(t.Context())
	if err != nil || string(meta["dropped"]) != "true" || string(meta["looked"]) != "true" {
		t.Errorf("%s %v", meta, err)
	}

	s = created(t, &session.Memory{})
	save(t, s, append(pair("q1", "r1"), pair("q2", "r2")...)...)
	for _, id := range []string{"drop", "look"} {
		if err := s.Act(t.Context(), w, session.Action{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if seen != want {
		t.Errorf("later calls: %s", seen)
	}

	// Two that change the history: the alignment that compacting needs holds.
	s = created(t, &session.Memory{})
	two := on(t, openaichat.Codec{}, step{"drop", dropFirst}, extension.Compact{Keep: 1, OnSave: true})
	if err := s.Connect(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	save(t, s, append(append(pair("q1", "r1"), pair("q2", "r2")...), pair("q3", "r3")...)...)
	if got := forWire(t, s, two); got != "q3 r3" {
		t.Errorf("%s", got)
	}
}

// What a later action sees is what is stored: a field of the metadata replaces the earlier one.
func TestX9_ChainedMetadataIsStoredAsSeen(t *testing.T) {
	patch := func(name, metadata string) step {
		return step{name, func(extension.ActionInput) (extension.ActionResult, error) {
			return extension.ActionResult{Metadata: json.RawMessage(metadata)}, nil
		}}
	}
	var seen map[string]json.RawMessage
	look := step{"look", func(in extension.ActionInput) (extension.ActionResult, error) {
		seen = in.Session.Metadata()
		return extension.ActionResult{}, nil
	}}
	s := created(t, &session.Memory{})
	if err := s.SetMetadata(t.Context(), json.RawMessage(`{"old":1,"/k":0}`)); err != nil {
		t.Fatal(err)
	}
	w := on(t, openaichat.Codec{}, patch("one", `{"k":{"a":1},"old":null,"/k":1,"":2}`), patch("two", `{"k":{"b":2}}`), look)
	if err := s.BeforeSave(t.Context(), w, "", pair("q", "r")); err != nil {
		t.Fatal(err)
	}
	stored, err := s.Metadata(t.Context())
	if err != nil || len(stored) != 3 || string(stored["k"]) != `{"b":2}` || string(stored["/k"]) != "1" || string(stored[""]) != "2" {
		t.Errorf("stored %s %v", stored, err)
	}
	for name, value := range stored {
		if string(seen[name]) != string(value) || len(seen) != len(stored) {
			t.Errorf("an action saw %s, but %s is stored", seen, stored)
		}
	}
}

// One extension cannot take away the work of the others, such as a summary by a model.
func TestX9_FailedActionKeepsTheResultsOfOthers(t *testing.T) {
	for name, run := range map[string]func(extension.ActionInput) (extension.ActionResult, error){
		"error": func(extension.ActionInput) (extension.ActionResult, error) {
			return extension.ActionResult{Native: []json.RawMessage{}}, errors.New("no luck")
		},
		"panic": func(extension.ActionInput) (extension.ActionResult, error) { panic("no luck") },
		"history that is none": func(extension.ActionInput) (extension.ActionResult, error) {
			return extension.ActionResult{Native: []json.RawMessage{json.RawMessage(`"no luck"`)}, Metadata: json.RawMessage(`{"bad":1}`)}, nil
		},
		"metadata that is none": func(extension.ActionInput) (extension.ActionResult, error) {
			return extension.ActionResult{Native: []json.RawMessage{}, Metadata: json.RawMessage(`"no luck"`)}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := created(t, &session.Memory{})
			var seen int
			w := on(t, openaichat.Codec{}, step{"drop", dropFirst}, step{"bad", run}, step{"last", func(in extension.ActionInput) (extension.ActionResult, error) {
				seen = len(in.Native) + 10*len(in.Session.Messages())
				return extension.ActionResult{Metadata: json.RawMessage(`{"last":true}`)}, nil
			}})
			conversation := append(pair("q1", "r1"), pair("q2", "r2")...)
			var failed *extension.Error
			if err := s.BeforeSave(t.Context(), w, "", conversation); !errors.As(err, &failed) || failed.Extension != "bad" {
				t.Errorf("%v", err)
			}
			save(t, s, conversation...)
			if got := forWire(t, s, w); got != "q2 r2" || seen != 22 {
				t.Errorf("the history is %s; the last action saw %d", got, seen)
			}
			meta, err := s.Metadata(t.Context())
			if err != nil || len(meta) != 2 || string(meta["dropped"]) != "true" || string(meta["last"]) != "true" {
				t.Errorf("%s %v", meta, err)
			}
		})
	}
}

func TestX10_ActionsHaveEveryLayerAndTheirLiveValues(t *testing.T) {
	s := created(t, &session.Memory{})
	type database struct{ name string }
	db := &database{"db"}
	var log strings.Builder
	s.ActionContext = session.ActionContext{
		App: json.RawMessage(`{"name":"app"}`), Base: json.RawMessage(`{"b":1}`), Values: map[string]any{"db": db},
		Layers: map[string]json.RawMessage{"mine": json.RawMessage(`1`), "core": json.RawMessage(`"forged"`)},
		Log:    slog.New(slog.NewTextHandler(&log, nil)),
	}
	ran := false
	w := on(t, openaichat.Codec{}, step{"look", func(in extension.ActionInput) (extension.ActionResult, error) {
		ran = true
		for name, want := range map[string]string{
			"core": `"action":"look"`, "config": `{}`, "trigger": `"source":"lifecycle"`,
			"session": s.ID(), "lifecycle": `session_save_prepare`, "request": `"run":"r","tags":[],"turn":3`,
			"runtime": `"values":["db"]`, "app": `{"name":"app"}`, "base_config": `{"b":1}`, "mine": `1`,
		} {
			if !strings.Contains(string(in.Context[name]), want) {
				t.Errorf("layer %s is %s, want %s", name, in.Context[name], want)
			}
		}
		r := in.Runtime
		if r.Values["db"] != db || r.Model == nil || r.Target.Model != "m" || r.Resolution == nil || len(r.Resolution.On) != 1 || r.Position.Turn != 3 {
			t.Errorf("%+v", r)
		}
		native, err := r.Encode([]dragoman.Message{dragoman.UserText("x")})
		if err != nil || len(native) != 1 || !strings.Contains(string(native[0]), `"x"`) {
			t.Errorf("%s %v", native, err)
		}
		return extension.ActionResult{}, nil
	}})
	ctx := modelcall.WithPosition(t.Context(), extension.Position{Run: "r", Turn: 3})
	if err := s.BeforeSave(ctx, w, "", pair("q", "r")); err != nil || !ran {
		t.Error(err, ran)
	}
	if !strings.Contains(log.String(), "reserved key") || !strings.Contains(log.String(), "key=core") {
		t.Errorf("no warning: %s", log.String())
	}
}

func TestX9_CompactingSummarizesWithTheModelByInstructions(t *testing.T) {
	s := created(t, &session.Memory{})
	save(t, s, exchange("q1", "a", "r1")...)
	save(t, s, pair("q2", "r2")...)
	w := on(t, openaichat.Codec{}, extension.Compact{})
	act := func(params string) error {
		return s.Act(t.Context(), w, session.Action{ID: extension.CompactID, Params: json.RawMessage(params)})
	}
	if err := act(`{"keep":2,"instructions":"Keep the prices."}`); err == nil || !strings.Contains(err.Error(), "the model has no script") {
		t.Errorf("the error of the model is lost: %v", err)
	}
	if got := forWire(t, s, w); got != "q1 r1 q2 r2" {
		t.Errorf("a failed action changed the history: %s", got)
	}
	var coded *extension.ActionError
	w.answers = []string{"  "}
	if err := act(`{"keep":2,"summarize":true}`); !errors.As(err, &coded) || coded.Code != "no_summary" {
		t.Error(err)
	}
	if err := act(`{"keep":2,"summarize":false,"instructions":"x"}`); !errors.As(err, &coded) || coded.Code != "invalid_params" {
		t.Error(err)
	}
	w.answers, w.asked = []string{"They agreed on 5 EUR."}, nil
	if err := act(`{"keep":2,"instructions":"Keep the prices."}`); err != nil {
		t.Fatal(err)
	}
	if got, want := forWire(t, s, w), "Summary of the conversation before this message:\n\n"+"They agreed on 5 EUR. q2 r2"; got != want {
		t.Errorf("%q", got)
	}
	req := w.asked[0]
	asked := req.Instructions[0].(*dragoman.Text).Text + req.Messages[0].Text()
	for _, want := range []string{"Keep the prices.", "user: q1", "assistant calls f: {}", "result of f: 1", "assistant: r1"} {
		if !strings.Contains(asked, want) {
			t.Errorf("the model does not read %q: %s", want, asked)
		}
	}
	if strings.Contains(asked, "q2") || req.Model != "m" {
		t.Errorf("%s of %s", asked, req.Model)
	}
	if meta, err := s.Metadata(t.Context()); err != nil || !strings.Contains(string(meta[extension.CompactName]), `"summarized":true`) {
		t.Errorf("%s %v", meta, err)
	}
}

// Nothing happens before a save until there is twice as much as compaction keeps: the model
// does not summarize in every turn.
func TestX9_CompactingBeforeASaveWaitsUntilThereIsEnough(t *testing.T) {
	s := created(t, &session.Memory{})
	w := on(t, openaichat.Codec{}, extension.Compact{Keep: 4, OnSave: true, Summarize: true})
	w.answers = []string{"one", "two", "three"}
	if err := s.Connect(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		save(t, s, pair(fmt.Sprint("q", i), fmt.Sprint("r", i))...)
	}
	if len(w.asked) != 2 || forWire(t, s, w) != "Summary of the conversation before this message:\n\n"+"two q5 r5 q6 r6 q7 r7" {
		t.Errorf("asked %d times: %s", len(w.asked), forWire(t, s, w))
	}
}

func TestX9_OnlyModelsOfProvidersCanBeConnected(t *testing.T) {
	s := created(t, &session.Memory{})
	for name, m := range map[string]dragoman.Model{"the simulator": &sim.Planner{}, "a chain": &provider.Chain{}} {
		if err := s.Connect(t.Context(), m); !errors.Is(err, session.ErrNoWire) {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Act(t.Context(), m, session.Action{ID: "x"}); !errors.Is(err, session.ErrNoWire) {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.BeforeSave(t.Context(), m, "", nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, err := (&provider.Config{}).Open("openai/gpt-5.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Connect(t.Context(), m); err != nil {
		t.Errorf("connecting must need no credential: %v", err)
	}
	actions, err := s.Actions(t.Context(), m, "")
	if err != nil || len(actions) != 1 || actions[0].ID != extension.CompactID {
		t.Errorf("%+v %v", actions, err)
	}
	if err := s.Act(t.Context(), m, session.Action{ID: "compact"}); !errors.Is(err, extension.ErrNoAction) || !strings.Contains(err.Error(), extension.CompactID) {
		t.Errorf("%v", err)
	}
}

// brokenActor is an extension that cannot list its actions.
type brokenActor struct{}

func (brokenActor) Info() extension.Info                     { return extension.Info{Name: "broken"} }
func (brokenActor) Actions(extension.Env) []extension.Action { panic("no actions today") }

func TestX9_PanicInActionsIsAnErrorOfTheExtension(t *testing.T) {
	s := created(t, &session.Memory{})
	var log strings.Builder
	s.ActionContext.Log = slog.New(slog.NewTextHandler(&log, nil))
	w := on(t, openaichat.Codec{}, brokenActor{})
	if err := s.Connect(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	save(t, s, pair("q1", "r1")...)
	if messages, _, err := s.Load(t.Context()); err != nil || len(messages) != 2 {
		t.Errorf("%d messages, %v", len(messages), err)
	}
	for _, want := range []string{"extension broken", "no actions today"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
	var failed *extension.Error
	_, err := s.Actions(t.Context(), w, "")
	if !errors.As(err, &failed) || failed.Extension != "broken" || failed.Hook != "actions" {
		t.Errorf("Actions: %v", err)
	}
	for _, name := range []string{"", "broken"} {
		if err := s.Act(t.Context(), w, session.Action{Extension: name, ID: "x"}); !errors.As(err, &failed) || failed.Extension != "broken" {
			t.Errorf("Act: %v", err)
		}
	}
}
