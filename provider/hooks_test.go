package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
)

// everyHook is an extension that has every hook but Tags and records its calls.
type everyHook struct {
	info extension.Info
	log  *[]string
}

func (e everyHook) called(hook string) { *e.log = append(*e.log, hook) }

func (e everyHook) Info() extension.Info { return e.info }

func (e everyHook) Initialize(context.Context, json.RawMessage) error {
	e.called("Initialize")
	return nil
}

func (e everyHook) Prepare(context.Context, *extension.Exchange) error {
	e.called("Prepare")
	return nil
}

func (e everyHook) Contribute(*extension.Exchange) []dragoman.Contribution {
	e.called("Contribute")
	return nil
}

func (e everyHook) Decorate(context.Context, *extension.Exchange) error {
	e.called("Decorate")
	return nil
}

func (e everyHook) ToNative(_ []dragoman.Message, native []json.RawMessage) []json.RawMessage {
	e.called("ToNative")
	return native
}

func (e everyHook) FromNative(_ []json.RawMessage, messages []dragoman.Message) []dragoman.Message {
	e.called("FromNative")
	return messages
}

func (e everyHook) ReadChunk(context.Context, *extension.Exchange, json.RawMessage) error {
	e.called("ReadChunk")
	return nil
}

func (e everyHook) Finish(context.Context, *extension.Exchange, *dragoman.Response) error {
	e.called("Finish")
	return nil
}

func (e everyHook) Idle(json.RawMessage) bool {
	e.called("Idle")
	return false
}

func (e everyHook) ConfigSchema() json.RawMessage {
	e.called("ConfigSchema")
	return json.RawMessage(`{"type":"object"}`)
}

func (e everyHook) Elements(extension.Env) []extension.Element {
	e.called("Elements")
	return nil
}

func (e everyHook) Actions(extension.Env) []extension.Action {
	e.called("Actions")
	return []extension.Action{{ID: "act", Triggers: []string{extension.BeforeSave}, Run: func(context.Context, extension.ActionInput) (extension.ActionResult, error) {
		e.called("action")
		return extension.ActionResult{}, nil
	}}}
}

// hookWithTags is everyHook with Tags: an extension with Tags is never idle.
type hookWithTags struct{ everyHook }

func (e hookWithTags) Tags(extension.Env) []extension.Tag {
	e.called("Tags")
	return []extension.Tag{"dynamic"}
}

// hookMethods returns the methods of all interfaces that an extension may implement.
func hookMethods(t *testing.T) (methods []string) {
	t.Helper()
	files, err := filepath.Glob("extension/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			i, ok := spec.Type.(*ast.InterfaceType)
			if !ok || slices.Contains([]string{"Extension", "Session", "recognizer"}, spec.Name.Name) {
				return false
			}
			for _, m := range i.Methods.List {
				for _, name := range m.Names {
					methods = append(methods, name.Name)
				}
			}
			return false
		})
	}
	if len(methods) < 12 {
		t.Fatalf("the hooks were not found, only %q", methods)
	}
	return methods
}

// exercise calls all methods of a client that call hooks of extensions.
func exercise(t *testing.T, c dialect.Codec, x provider.Extensions, on bool) {
	t.Helper()
	model := serve(t, c, respond(textResponse("Yes."))).client(&provider.Client{Extensions: x})
	if _, err := model.Generate(t.Context(), newRequest()); err != nil {
		t.Fatal(err)
	}
	if _, err := dragoman.Collect(model.Stream(t.Context(), newRequest())); err != nil {
		t.Fatal(err)
	}
	model.Transparent(t.Context(), "")
	_, r, err := model.Target(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Panels(); err != nil {
		t.Fatal(err)
	}
	s, err := session.Create(t.Context(), &session.Memory{}, session.Info{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Connect(t.Context(), model); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context(), []dragoman.Message{dragoman.UserText("q"), dragoman.AssistantText("a")}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Act(t.Context(), model, session.Action{ID: "act"}); on == errors.Is(err, extension.ErrNoAction) {
		t.Errorf("running an action: %v", err)
	}
	if err := s.Act(t.Context(), model, session.Action{Extension: "every", ID: "act"}); on == errors.Is(err, extension.ErrNoAction) {
		t.Errorf("running an action by the name of its extension: %v", err)
	}
	if r.Has("dynamic") && !on {
		t.Error("an extension that is off adds its tags")
	}
}

func TestX2_DisabledExtensionRunsNoHooks(t *testing.T) {
	named := extension.Info{Name: "every"}
	with := func(change func(*extension.Info)) extension.Info {
		info := named
		change(&info)
		return info
	}
	never := []extension.Tag{"never"}
	each(t, func(t *testing.T, c dialect.Codec) {
		for name, tc := range map[string]struct {
			info     extension.Info
			switches extension.Switches
			on       bool
		}{
			"on":            {info: named, on: true},
			"lacks a tag":   {info: with(func(i *extension.Info) { i.Requires = never })},
			"forbids a tag": {info: with(func(i *extension.Info) { i.Forbids = []extension.Tag{extension.Tag("dialect:" + c.Dialect())} })},
			"opt-in":        {info: with(func(i *extension.Info) { i.OptIn = true })},
			"switched off":  {info: named, switches: extension.Switches{Off: []string{"every"}}},
			"needs its own": {info: with(func(i *extension.Info) { i.Requires = []extension.Tag{"dynamic"} })},
			"forced":        {info: with(func(i *extension.Info) { i.Requires = never }), switches: extension.Switches{Force: []string{"every"}}, on: true},
		} {
			t.Run(name, func(t *testing.T) {
				var log []string
				every := everyHook{tc.info, &log}
				for _, e := range []extension.Extension{every, hookWithTags{every}} {
					x := extensions(t, e)
					x.Switches = tc.switches
					exercise(t, c, x, tc.on)
				}
				if !tc.on {
					if len(log) > 0 {
						t.Errorf("called: %q", log)
					}
					return
				}
				for _, hook := range append(hookMethods(t), "action") {
					if !slices.Contains(log, hook) {
						t.Errorf("%s is not called: this test does not cover it", hook)
					}
				}
			})
		}
	})
}

// An extension that a tool switches on is off for requests without that tool, also after
// it was on.
func TestX2_HooksFollowTheTagsOfEachRequest(t *testing.T) {
	each(t, func(t *testing.T, c dialect.Codec) {
		var log []string
		model := serve(t, c, respond(textResponse("Yes."))).client(&provider.Client{
			Extensions: extensions(t, everyHook{extension.Info{Name: "every", Requires: []extension.Tag{"tool:get_weather"}}, &log}),
		})
		for i, tools := range []bool{false, true, false} {
			log = nil
			req := newRequest()
			if !tools {
				req.Tools = nil
			}
			if _, err := model.Generate(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if _, err := dragoman.Collect(model.Stream(t.Context(), req)); err != nil {
				t.Fatal(err)
			}
			if (len(log) > 0) != tools {
				t.Errorf("request %d, tools %t: called %q", i, tools, log)
			}
		}
	})
}

// Extensions with a single hook, without its counterpart.
type (
	soleHook     struct{}
	writesNative struct{ soleHook }
	readsNative  struct{ soleHook }
	hasSchema    struct{ soleHook }
	hasElements  struct{ soleHook }
)

func (soleHook) Info() extension.Info { return extension.Info{Name: "alone"} }

func (writesNative) ToNative(messages []dragoman.Message, native []json.RawMessage) []json.RawMessage {
	return extension.ToNative(messages, native, func(_ *dragoman.Message, o *extension.Object) error { return o.Set("mood", "curious") })
}

func (readsNative) FromNative(native []json.RawMessage, messages []dragoman.Message) []dragoman.Message {
	return extension.FromNative(native, messages, func(_ *extension.Object, m *dragoman.Message) error {
		m.Phase = "read"
		return nil
	})
}

func (hasSchema) ConfigSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"deep":{"type":"boolean"}},"additionalProperties":false}`)
}

func (hasElements) Elements(extension.Env) []extension.Element {
	return []extension.Element{{Kind: "toggle", Setting: "deep", Label: "think"}}
}

func TestX3_EachHookIsOptional(t *testing.T) {
	each(t, func(t *testing.T, c dialect.Codec) {
		forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
			s := serve(t, c, func(s *server, w http.ResponseWriter, r *http.Request, got received) {
				respond(textResponse("Yes."))(s, w, r, got)
			})
			if _, err := ask(s.client(&provider.Client{Extensions: extensions(t, writesNative{})}), newRequest()); err != nil {
				t.Fatal(err)
			}
			if body := s.requests()[0].body; !bytes.Contains(body, []byte(`"mood":"curious"`)) {
				t.Errorf("ToNative alone: %s", body)
			}
			plain := s.client(&provider.Client{Extensions: extensions(t, readsNative{})})
			resp, err := ask(plain, newRequest())
			if err != nil || len(resp.Output) != 1 || resp.Output[0].Phase != "read" {
				t.Errorf("FromNative alone: %v, %v", resp, err)
			}
			if plain.Transparent(t.Context(), "") {
				t.Error("a client whose extension reads responses is transparent")
			}
		})
	})

	file := "version: 1\nproviders:\n  work: {type: compatible, base_url: 'http://x.test/v1', extensions: {alone: {deep: 1}}}\n"
	if _, err := provider.Parse("models.yaml", []byte(file), hasSchema{}); err == nil {
		t.Error("ConfigSchema alone: settings are not checked")
	}
	for name, ext := range map[string]extension.Extension{"ConfigSchema": hasSchema{}, "Elements": hasElements{}} {
		_, r, err := (&provider.Client{Model: "m", Extensions: extensions(t, ext)}).Target(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		panels, err := r.Panels()
		if err != nil || len(panels) != 1 || (panels[0].Schema != nil) != (name == "ConfigSchema") || (panels[0].Elements != nil) != (name == "Elements") {
			t.Errorf("%s alone: %v, %v", name, panels, err)
		}
	}
}
