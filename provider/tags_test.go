package provider_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// tagMarker marks requests while it is on.
type tagMarker struct {
	name string
	on   []extension.Tag
}

func (m tagMarker) Info() extension.Info { return extension.Info{Name: m.name, Requires: m.on} }

func (m tagMarker) Decorate(_ context.Context, x *extension.Exchange) error {
	return x.Payload.Set("mark_"+m.name, true)
}

// sentBodies serves responses and records the request bodies.
func sentBodies(t *testing.T) (url string, bodies *[]string) {
	t.Helper()
	bodies = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		*bodies = append(*bodies, string(b))
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, bodies
}

func TestX1_ConfigFileSetsTagsOfProvidersAndModels(t *testing.T) {
	url, bodies := sentBodies(t)
	config, err := provider.Parse("f.yaml", []byte(`
version: 1
providers:
  work:
    type: compatible
    base_url: `+url+`
    tags: [region:eu, billing]
    models:
      small: {name: tiny, tags: tier:small}
`), tagMarker{"eu", []extension.Tag{"region:eu", "billing"}}, tagMarker{"small", []extension.Tag{"tier:small"}}, tagMarker{"us", []extension.Tag{"region:us"}})
	if err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{"work/small": "eu small", "work/large": "eu"} {
		m, err := config.Open(spec)
		if err != nil {
			t.Fatal(err)
		}
		*bodies = nil
		if _, err := m.Generate(t.Context(), newRequest()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{"eu", "small", "us"} {
			if strings.Contains((*bodies)[0], `"mark_`+name+`":true`) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q are on, want %q", spec, got, want)
		}
	}
}

func TestX1_InvalidTagsInAConfigFileAreErrors(t *testing.T) {
	_, err := provider.Parse("f.yaml", []byte("version: 1\nproviders:\n  openai:\n    tags: [\"two words\"]\n"))
	var where *provider.FileError
	if !errors.As(err, &where) || where.Line != 4 || !strings.Contains(err.Error(), "two words") {
		t.Error(err)
	}
	c := &provider.Config{Providers: map[string]provider.Settings{"openai": {Tags: []extension.Tag{"two words"}}}}
	var setting *provider.SettingError
	if _, err := c.Open("openai/gpt-5"); !errors.As(err, &setting) {
		t.Error(err)
	}
}

func TestX1_ToolsAndProvidersGiveTagsToARequest(t *testing.T) {
	url, bodies := sentBodies(t)
	ext := extensions(t, tagMarker{"tool", []extension.Tag{"tool:look"}}, tagMarker{"long", []extension.Tag{"model:m", "many"}})
	ext.TagsFor = func(s extension.Setup) []extension.Tag {
		tags := []extension.Tag{extension.Tag("model:" + s.Model)}
		if len(s.Tools) > 1 {
			tags = append(tags, "many")
		}
		return tags
	}
	c := &provider.Client{BaseURL: url, Model: "m", Extensions: ext}
	if c.Transparent(t.Context(), "") {
		t.Error("a client whose tags depend on tools is not transparent")
	}
	for _, tools := range [][]string{{"look"}, {"a", "b"}, nil} {
		req := newRequest()
		req.Tools = nil
		for _, name := range tools {
			req.Tools = append(req.Tools, dragoman.ToolSpec{Name: name})
		}
		if _, err := c.Generate(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []struct{ tool, long bool }{{true, false}, {false, true}, {false, false}} {
		if b := (*bodies)[i]; strings.Contains(b, "mark_tool") != want.tool || strings.Contains(b, "mark_long") != want.long {
			t.Errorf("request %d: %s", i, b)
		}
	}
}
