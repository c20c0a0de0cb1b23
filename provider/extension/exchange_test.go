package extension_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// everyHook has every hook of a request and records its calls.
type everyHook struct {
	infoExtension
	log  *[]string
	fail string
}

func (a everyHook) note(hook string) error {
	*a.log = append(*a.log, a.Name+" "+hook)
	switch a.fail {
	case hook:
		return errors.New("no")
	case hook + " panics":
		panic("no")
	}
	return nil
}

func (a everyHook) Prepare(_ context.Context, x *extension.Exchange) error {
	x.Target.Caps.NoStrict = true
	return a.note("prepare")
}

func (a everyHook) Contribute(*extension.Exchange) []dragoman.Contribution {
	if a.note("contribute") != nil {
		return nil
	}
	return []dragoman.Contribution{{Accepts: []dragoman.Format{"acme.tool"}}}
}

func (a everyHook) Decorate(_ context.Context, x *extension.Exchange) error {
	return errors.Join(a.note("decorate"), x.Payload.Set(a.Name, true))
}

func (a everyHook) ReadChunk(_ context.Context, x *extension.Exchange, chunk json.RawMessage) error {
	return errors.Join(a.note("chunk"), x.Partial().Merge(chunk))
}

func (a everyHook) Finish(_ context.Context, _ *extension.Exchange, resp *dragoman.Response) error {
	resp.ID += a.Name
	return a.note("finish")
}

// runRequest runs a request through all hooks.
func runRequest(t testing.TB, r *extension.Resolution) (payload json.RawMessage, resp *dragoman.Response, err error) {
	t.Helper()
	x := extension.NewExchange(extension.Options{Request: &dragoman.Request{}, Resolution: r})
	resp = &dragoman.Response{}
	_, contributed := x.Contributions()
	payload, decorated := x.Decorate(t.Context(), json.RawMessage(`{"model":"m"}`))
	err = errors.Join(x.Prepare(t.Context()), contributed, decorated, x.ReadChunk(t.Context(), json.RawMessage(`{"x":1}`)), x.Finish(t.Context(), resp))
	return payload, resp, err
}

func TestX2_DisabledExtensionRunsNoHooks(t *testing.T) {
	var log []string
	r := resolve(t, set(t, everyHook{infoExtension: infoExtension{Name: "on"}, log: &log}, everyHook{infoExtension: needs("off", "x"), log: &log}), extension.Switches{})
	payload, resp, err := runRequest(t, r)
	if err != nil {
		t.Fatal(err)
	}
	if string(payload) != `{"model":"m","on":true}` || resp.ID != "on" {
		t.Errorf("%s %s", payload, resp.ID)
	}
	for _, l := range log {
		if strings.HasPrefix(l, "off") {
			t.Errorf("called: %s", l)
		}
	}
	if len(log) != 5 {
		t.Errorf("%q", log)
	}
}

func TestX3_HooksRunInRegistrationOrder(t *testing.T) {
	var log []string
	r := resolve(t, set(t, everyHook{infoExtension: infoExtension{Name: "b"}, log: &log}, infoExtension{Name: "none"}, everyHook{infoExtension: infoExtension{Name: "a"}, log: &log}), extension.Switches{})
	if payload, resp, err := runRequest(t, r); err != nil || string(payload) != `{"model":"m","b":true,"a":true}` || resp.ID != "ba" {
		t.Errorf("%v %s %s", err, payload, resp.ID)
	}
	for _, how := range []string{"decorate", "prepare panics", "finish panics", "chunk"} {
		r := resolve(t, set(t, everyHook{infoExtension: infoExtension{Name: "bad"}, log: &log, fail: how}), extension.Switches{})
		_, _, err := runRequest(t, r)
		var whose *extension.Error
		if !errors.As(err, &whose) || whose.Extension != "bad" || whose.Hook == "" {
			t.Errorf("%s: %v", how, err)
		}
	}
	// Without a Decorate hook, the payload is not even parsed.
	r = resolve(t, set(t, infoExtension{Name: "none"}), extension.Switches{})
	x := extension.NewExchange(extension.Options{Resolution: r})
	if out, err := x.Decorate(t.Context(), json.RawMessage(`not json`)); err != nil || string(out) != "not json" || x.ReadsChunks() {
		t.Errorf("%s %v", out, err)
	}
	if c, err := extension.NewExchange(extension.Options{}).Contributions(); err != nil || c != nil {
		t.Error(c, err)
	}
}

func TestX4_ValuesBelongToTheirKey(t *testing.T) {
	one, other := extension.NewKey[int]("n"), extension.NewKey[int]("n")
	x := extension.NewExchange(extension.Options{})
	one.Put(x, 7)
	if one.Get(x) != 7 || other.Get(x) != 0 || one.String() != "n" {
		t.Errorf("%d, %d", one.Get(x), other.Get(x))
	}
}

// settingsReader reads its settings.
type settingsReader struct {
	infoExtension
	got *string
}

func (c settingsReader) Decorate(_ context.Context, x *extension.Exchange) error {
	var s struct{ Effort string }
	found, err := x.Config(&s)
	if *c.got = s.Effort; found && err == nil {
		return x.Payload.Set("effort", s.Effort)
	}
	return err
}

func TestX8_SettingIsAddedOnlyIfConfigured(t *testing.T) {
	for config, want := range map[string]string{"": `{"model":"m"}`, `{"effort":"high"}`: `{"model":"m","effort":"high"}`} {
		var got string
		r := resolve(t, set(t, settingsReader{infoExtension{Name: "knob"}, &got}), extension.Switches{})
		settings := map[string]json.RawMessage{"other": json.RawMessage(`{"effort":"low"}`)}
		if config != "" {
			settings["knob"] = json.RawMessage(config)
		}
		x := extension.NewExchange(extension.Options{Resolution: r, Config: settings})
		if out, err := x.Decorate(t.Context(), json.RawMessage(`{"model":"m"}`)); err != nil || string(out) != want {
			t.Errorf("%q: %s %v", config, out, err)
		}
	}
}

// textAccumulator accumulates a text and a list.
type textAccumulator struct {
	infoExtension
	text  *extension.Accumulator[extension.Text]
	calls *extension.Accumulator[[]string]
}

func (g textAccumulator) ReadChunk(_ context.Context, x *extension.Exchange, chunk json.RawMessage) error {
	return errors.Join(g.text.Read(x, chunk), g.calls.Read(x, chunk))
}

func newTextAccumulator() textAccumulator {
	field := func(chunk json.RawMessage, name string) (string, bool, error) {
		var v map[string]string
		err := json.Unmarshal(chunk, &v)
		s, ok := v[name]
		return s, ok, err
	}
	return textAccumulator{
		infoExtension{Name: "g"},
		&extension.Accumulator[extension.Text]{
			Path: "/message/thinking", Fold: extension.Append, Fragments: true,
			Extract: func(c json.RawMessage) (extension.Text, bool, error) {
				s, ok, err := field(c, "t")
				return extension.Text(s), ok, err
			},
		},
		&extension.Accumulator[[]string]{
			Path: "/message/calls", Fold: func(sum, piece []string) []string { return append(sum, piece...) },
			Extract: func(c json.RawMessage) ([]string, bool, error) {
				s, ok, err := field(c, "c")
				return []string{s}, ok, err
			},
		},
	}
}

func TestX5_FragmentsAreAccumulatedAndPatched(t *testing.T) {
	g := newTextAccumulator()
	var told []string
	x := extension.NewExchange(extension.Options{
		Resolution: resolve(t, set(t, g), extension.Switches{}),
		Patches: func(p extension.Patch) {
			told = append(told, p.Extension+p.Path+string(p.Value)+map[bool]string{true: "+", false: "="}[p.Fragment])
		},
	})
	if err := x.Partial().Merge(json.RawMessage(`{"message":{"role":"assistant"}}`)); err != nil {
		t.Fatal(err)
	}
	for _, chunk := range []string{`{"t":"a\"<"}`, `{"c":"one"}`, `{}`, `{"t":"b","c":"two"}`} {
		if err := x.ReadChunk(t.Context(), json.RawMessage(chunk)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := string(x.Partial().JSON()), `{"message":{"role":"assistant","thinking":"a\"<b","calls":["one","two"]}}`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	want := []string{`g/message/thinking"a\"<"+`, `g/message/calls["one"]=`, `g/message/thinking"b"+`, `g/message/calls["one","two"]=`}
	if !slices.Equal(told, want) {
		t.Errorf("%q\nwant\n%q", told, want)
	}
	if err := x.ReadChunk(t.Context(), json.RawMessage(`{"t":1}`)); err == nil {
		t.Error("a piece of the wrong type was taken")
	}
}

func TestX5_AccumulationIsLinear(t *testing.T) {
	work := func(n int) float64 {
		return testing.AllocsPerRun(1, func() {
			x := extension.NewExchange(extension.Options{Resolution: resolve(t, set(t, newTextAccumulator()), extension.Switches{})})
			for range n {
				if err := x.ReadChunk(t.Context(), json.RawMessage(`{"t":"0123456789"}`)); err != nil {
					t.Fatal(err)
				}
			}
			if got := len(x.Partial().JSON()); got < 10*n {
				t.Fatal(got)
			}
		})
	}
	if one, four := work(2_000), work(8_000); four > 5*one {
		t.Errorf("%v allocations for 2,000 pieces, %v for 8,000", one, four)
	}
}

// actionExtension has actions.
type actionExtension struct {
	infoExtension
	actions []extension.Action
}

func (a actionExtension) Actions(extension.Env) []extension.Action { return a.actions }

func TestX9_ActionsReplaceTheNativeHistoryAndPatchTheMetadata(t *testing.T) {
	drop := func(_ context.Context, in extension.ActionInput) (extension.ActionResult, error) {
		if len(in.Native) == 0 {
			return extension.ActionResult{}, &extension.ActionError{Code: "nothing_to_do", Message: "there is no history"}
		}
		return extension.ActionResult{Native: in.Native[1:], Metadata: json.RawMessage(`{"dropped":{"` + string(in.Native[0]) + `":true}}`)}, nil
	}
	mine := actionExtension{infoExtension{Name: "mine"}, []extension.Action{
		{ID: "drop", Label: "Drop one", Triggers: []string{extension.BeforeSave}, Run: drop},
		{ID: "panics", Label: "Panics", Run: func(context.Context, extension.ActionInput) (extension.ActionResult, error) { panic("no") }},
	}}
	other := actionExtension{infoExtension{Name: "other"}, []extension.Action{{ID: "drop", Label: "Drop another", Triggers: []string{extension.BeforeSave}, Run: drop}}}
	off := actionExtension{needs("off", "x"), []extension.Action{{ID: "drop", Label: "Never", Triggers: []string{extension.BeforeSave}, Run: drop}}}
	r := resolve(t, set(t, mine, other, off), extension.Switches{})
	if got, err := r.Actions(); err != nil || len(got) != 3 || got[2].Extension != "other" {
		t.Errorf("%+v", got)
	}
	native := []json.RawMessage{json.RawMessage("1"), json.RawMessage("2"), json.RawMessage("3")}
	res, err := r.Triggered(t.Context(), extension.BeforeSave, extension.ActionInput{Native: native})
	if err != nil || len(res.Native) != 1 || string(res.Native[0]) != "3" || string(res.Metadata) != `{"dropped":{"2":true}}` {
		t.Errorf("%v: %s %s", err, res.Native, res.Metadata)
	}
	_, err = r.Run(t.Context(), "mine", "drop", extension.ActionInput{})
	var coded *extension.ActionError
	if !errors.As(err, &coded) || coded.Code != "nothing_to_do" {
		t.Error(err)
	}
	var whose *extension.Error
	if _, err = r.Run(t.Context(), "mine", "panics", extension.ActionInput{}); !errors.As(err, &whose) || whose.Extension != "mine" {
		t.Error(err)
	}
	if _, err = r.Run(t.Context(), "off", "drop", extension.ActionInput{}); !errors.Is(err, extension.ErrNoAction) {
		t.Error(err)
	}
}

func TestX10_CallerContextKeepsReservedNames(t *testing.T) {
	var log bytes.Buffer
	var got map[string]json.RawMessage
	look := func(_ context.Context, in extension.ActionInput) (extension.ActionResult, error) {
		got = in.Context
		return extension.ActionResult{}, nil
	}
	r := resolve(t, set(t, actionExtension{infoExtension{Name: "mine"}, []extension.Action{{ID: "look", Run: look}}}), extension.Switches{})
	caller := map[string]json.RawMessage{"core": json.RawMessage(`"mine"`), "app": json.RawMessage(`1`), "page": json.RawMessage(`2`)}
	in := extension.ActionInput{Context: caller, Log: slog.New(slog.NewTextHandler(&log, nil))}
	if _, err := r.Run(t.Context(), "mine", "look", in); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got["core"]), `"look"`) || got["app"] != nil || string(got["page"]) != "2" {
		t.Errorf("%s", got)
	}
	if strings.Count(log.String(), "reserved") != 2 || len(caller) != 3 {
		t.Errorf("%s %s", log.String(), caller)
	}
}

// fixedSession is a session.
type fixedSession struct{}

func (fixedSession) ID() string { return "s1" }
func (fixedSession) Messages() []dragoman.Message {
	return []dragoman.Message{dragoman.UserText("a"), dragoman.AssistantText("b")}
}
func (fixedSession) Metadata() map[string]json.RawMessage { return nil }

func TestX10_ActionsGetContextLayers(t *testing.T) {
	var seen map[string]json.RawMessage
	look := func(_ context.Context, in extension.ActionInput) (extension.ActionResult, error) {
		seen = in.Context
		return extension.ActionResult{}, nil
	}
	mine := actionExtension{infoExtension{Name: "mine", Version: "2"}, []extension.Action{{ID: "look", Triggers: []string{extension.BeforeSave}, Run: look}}}
	r, err := set(t, mine, infoExtension{Name: "other"}).Resolve([]extension.Tag{"server:acme"}, extension.Switches{})
	if err != nil {
		t.Fatal(err)
	}
	want := func(when string, layers map[string]string) {
		t.Helper()
		for name, value := range layers {
			if string(seen[name]) != value {
				t.Errorf("%s: %s is %s, want %s", when, name, seen[name], value)
			}
		}
		if len(seen) != len(layers) {
			t.Errorf("%s: the layers are %s", when, seen)
		}
	}
	// The core layer is always present, whatever the caller passes.
	if _, err := r.Run(t.Context(), "mine", "look", extension.ActionInput{}); err != nil {
		t.Fatal(err)
	}
	core := map[string]string{
		"core": `{"action":"look","extension":"mine","version":"2"}`, "config": `{}`, "trigger": `{"source":"call"}`, "lifecycle": `{}`,
		"session": `{"dialect":"","model":"","native":0,"provider":""}`,
		"request": `{"tags":["server:acme"]}`, "runtime": `{"encode":false,"extensions":["mine","other"],"model":false}`,
	}
	want("asked for", core)

	// The application adds a layer. A caller adds values and replaces none.
	var log bytes.Buffer
	in := extension.ActionInput{
		Session: fixedSession{}, Native: []json.RawMessage{json.RawMessage(`{}`)}, Origin: dragoman.Origin{Dialect: dialectname.Ollama, Provider: "ollama", Model: "m"},
		Settings: map[string]json.RawMessage{"mine": json.RawMessage(`{"keep":3}`), "other": json.RawMessage(`{"secret":1}`)},
		App:      json.RawMessage(`{"name":"desk"}`), Base: json.RawMessage(`{"theme":"dark"}`),
		Context: map[string]json.RawMessage{"page": json.RawMessage(`2`), "session": json.RawMessage(`"forged"`), "app": json.RawMessage(`"forged"`)},
		Log:     slog.New(slog.NewTextHandler(&log, nil)),
	}
	if _, err := r.Triggered(t.Context(), extension.BeforeSave, in); err != nil {
		t.Fatal(err)
	}
	core["config"], core["trigger"], core["lifecycle"] = `{"keep":3}`, `{"source":"lifecycle"}`, `{"moment":"session_save_prepare"}`
	core["session"] = `{"dialect":"ollama.chat","id":"s1","messages":2,"model":"m","native":1,"provider":"ollama"}`
	core["app"], core["base_config"], core["page"] = `{"name":"desk"}`, `{"theme":"dark"}`, `2`
	want("by itself", core)
	if strings.Count(log.String(), "reserved") != 2 {
		t.Errorf("the log says %s", log.String())
	}
}

// A partial response that lacks accumulated values is an error.
func TestX4_UnencodableSumIsAnError(t *testing.T) {
	x := extension.NewExchange(extension.Options{Resolution: resolve(t, set(t, newTextAccumulator(), overwriter{}), extension.Switches{})})
	if err := x.ReadChunk(t.Context(), json.RawMessage(`{"t":"a"}`)); err != nil {
		t.Fatal(err)
	}
	err := x.Finish(t.Context(), &dragoman.Response{})
	var whose *extension.Error
	if !errors.As(err, &whose) || whose.Extension != newTextAccumulator().Info().Name || whose.Hook != "accumulate" || !errors.Is(err, extension.ErrNoPath) {
		t.Errorf("%v", err)
	}
	x.Restart()
	if err := x.Finish(t.Context(), &dragoman.Response{}); err != nil {
		t.Errorf("another attempt: %v", err)
	}
}

// overwriter writes another value where the accumulated sum belongs.
type overwriter struct{}

func (overwriter) Info() extension.Info { return extension.Info{Name: "trampler"} }

func (overwriter) Finish(_ context.Context, x *extension.Exchange, _ *dragoman.Response) error {
	if err := x.Partial().Set("message", "mine"); err != nil {
		return err
	}
	_ = x.Partial()
	return nil
}

func TestX9_ActionParametersAreValidated(t *testing.T) {
	ran := 0
	run := func(context.Context, extension.ActionInput) (extension.ActionResult, error) {
		ran++
		return extension.ActionResult{}, nil
	}
	mine := actionExtension{infoExtension{Name: "mine"}, []extension.Action{
		{ID: "strict", Inputs: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`), Run: run},
		{ID: "none", Run: run},
	}}
	r := resolve(t, set(t, mine), extension.Switches{})
	for params, ok := range map[string]bool{`{"n":1}`: true, ``: false, `{"n":"1"}`: false, `{"n":1,"m":2}`: false, `{`: false} {
		before := ran
		_, err := r.Run(t.Context(), "mine", "strict", extension.ActionInput{Params: json.RawMessage(params)})
		var coded *extension.ActionError
		if ok != (err == nil) || ok != (ran > before) || err != nil && (!errors.As(err, &coded) || coded.Code != "invalid_params") {
			t.Errorf("%s: %v", params, err)
		}
	}
	if _, err := r.Run(t.Context(), "mine", "none", extension.ActionInput{Params: json.RawMessage(`{"n":1}`)}); err != nil {
		t.Error(err)
	}
}
