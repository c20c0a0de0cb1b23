package extension_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// adaptiveExtension is an extension whose tags and elements depend on where it is used.
type adaptiveExtension struct{ panics bool }

func (adaptiveExtension) Info() extension.Info {
	return extension.Info{Name: "adaptive", Provides: []extension.Tag{"adaptive"}}
}

func (a adaptiveExtension) Tags(env extension.Env) []extension.Tag {
	if a.panics {
		panic("no")
	}
	tags := []extension.Tag{extension.Tag("model:" + env.Model)}
	var set struct{ Deep bool }
	if json.Unmarshal(env.Config, &set) == nil && set.Deep {
		tags = append(tags, "deep")
	}
	for i := range env.Tools {
		tags = append(tags, extension.Tag("has:"+env.Tools[i].Name))
	}
	return tags
}

func (adaptiveExtension) ConfigSchema() json.RawMessage { return json.RawMessage(`{"type":"object"}`) }

func (a adaptiveExtension) Elements(env extension.Env) []extension.Element {
	if env.Model == "none" {
		panic("no")
	}
	out := []extension.Element{{Kind: "toggle", Setting: "deep", Label: "Think deeply on " + env.Model}}
	for i := range env.Tools {
		out = append(out, extension.Element{Kind: "note", Label: env.Tools[i].Name})
	}
	if env.Config != nil {
		out = append(out, extension.Element{Kind: "number", Setting: "budget", Label: "Budget"})
	}
	return out
}

func TestX1_TagsOfExtensionsDependOnConfigModelAndTools(t *testing.T) {
	s := set(t, adaptiveExtension{}, infoExtension{Name: "needs", Requires: []extension.Tag{"deep", "has:look", "model:m"}})
	setup := extension.Setup{Config: map[string]json.RawMessage{"adaptive": json.RawMessage(`{"deep":true}`)}, Model: "m", Tools: []dragoman.ToolSpec{{Name: "look"}}}
	r, err := s.ResolveFor(nil, extension.Switches{}, setup)
	if err != nil || len(r.On) != 2 || !slices.Equal(r.Tags, []extension.Tag{"adaptive", "deep", "has:look", "model:m"}) {
		t.Errorf("%v %+v", err, r)
	}
	for name, change := range map[string]func(*extension.Setup){
		"other settings": func(s *extension.Setup) { s.Config = nil },
		"another model":  func(s *extension.Setup) { s.Model = "n" },
		"no tools":       func(s *extension.Setup) { s.Tools = nil },
	} {
		other := setup
		change(&other)
		if r, err := s.ResolveFor(nil, extension.Switches{}, other); err != nil || len(r.On) != 1 {
			t.Errorf("%s: %v %+v", name, err, r)
		}
	}
	if r, err := s.ResolveFor(nil, extension.Switches{Off: []string{"adaptive"}}, setup); err != nil || len(r.Tags) != 0 {
		t.Errorf("an extension that is off has tags: %v %+v", err, r)
	}
	var whose *extension.Error
	if _, err := set(t, adaptiveExtension{panics: true}).Resolve(nil, extension.Switches{}); !errors.As(err, &whose) || whose.Hook != "tags" {
		t.Errorf("%v", err)
	}
}

func TestX11_ElementsDependOnConfigModelAndTools(t *testing.T) {
	s := set(t, adaptiveExtension{}, infoExtension{Name: "no settings"})
	panels := func(setup extension.Setup) string {
		r, err := s.ResolveFor(nil, extension.Switches{}, setup)
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Panels()
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got, want := panels(extension.Setup{Model: "m"}), `[{"extension":"adaptive","schema":{"type":"object"},"elements":[{"kind":"toggle","setting":"deep","label":"Think deeply on m"}]}]`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	got := panels(extension.Setup{Model: "n", Tools: []dragoman.ToolSpec{{Name: "look"}}, Config: map[string]json.RawMessage{"adaptive": json.RawMessage(`{}`)}})
	for _, want := range []string{`deeply on n`, `"label":"look"`, `"setting":"budget"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	r, err := s.ResolveFor(nil, extension.Switches{}, extension.Setup{Model: "none"})
	if err != nil {
		t.Fatal(err)
	}
	var whose *extension.Error
	if _, err := r.Panels(); !errors.As(err, &whose) || whose.Extension != "adaptive" {
		t.Errorf("%v", err)
	}
}

func TestX1_TagsAreWords(t *testing.T) {
	for tag, ok := range map[extension.Tag]bool{"server:vllm": true, "a/b@c.d_e-F": true, "": false, "two words": false, "é": false, extension.Tag(strings.Repeat("x", 129)): false} {
		if err := tag.Check(); (err == nil) != ok {
			t.Errorf("%q: %v", tag, err)
		}
	}
}
