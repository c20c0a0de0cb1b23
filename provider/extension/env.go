package extension

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
)

// Env holds what the tags, elements and actions of an extension may depend on. Extensions
// must not change it.
type Env struct {
	// Config holds the settings of the extension; nil if it has none.
	Config json.RawMessage
	// Model is the provider's name for the model.
	Model string
	// Tools are the tools of the request; nil outside of a request.
	Tools []dragoman.ToolSpec
}

// Setup is the configuration and the request that extensions are resolved for.
type Setup struct {
	// Config holds the settings of extensions by their names.
	Config map[string]json.RawMessage
	// Model and Tools are those of the request.
	Model string
	Tools []dragoman.ToolSpec
}

// Env returns the part of the setup for one extension.
func (s Setup) Env(extension string) Env {
	return Env{Config: s.Config[extension], Model: s.Model, Tools: s.Tools}
}

// tagsOf returns the tags that an active extension adds. A panic is an error.
func tagsOf(e Extension, info *Info, setup Setup) (tags []Tag, err error) {
	t, ok := e.(tagger)
	if !ok {
		return info.Provides, nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = &Error{Extension: info.Name, Hook: "tags", Err: fmt.Errorf("panicked: %v", v)}
		}
	}()
	return append(append([]Tag(nil), info.Provides...), t.Tags(setup.Env(info.Name))...), nil
}

// Panel describes the settings of one extension: a terminal or a page renders it
// without knowing the extension.
type Panel struct {
	Extension   string          `json:"extension"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Elements    []Element       `json:"elements,omitempty"`
}

// Panels describes the settings of the extensions that are on and have any, in order.
// The elements of each depend on its settings, the model and the tools that the
// extensions were resolved for. A panic of an extension is an error.
func (r *Resolution) Panels() (out []Panel, err error) {
	for _, e := range r.On {
		configurable, hasSchema := e.(configurable)
		presenter, hasElements := e.(presenter)
		if !hasSchema && !hasElements {
			continue
		}
		info := e.Info()
		p := Panel{Extension: info.Name, Description: info.Description}
		err := func() (err error) {
			defer func() {
				if v := recover(); v != nil {
					err = &Error{Extension: info.Name, Hook: "elements", Err: fmt.Errorf("panicked: %v", v)}
				}
			}()
			if hasSchema {
				p.Schema = configurable.ConfigSchema()
			}
			if hasElements {
				p.Elements = presenter.Elements(r.setup.Env(info.Name))
			}
			return nil
		}()
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// Position identifies a response within a run. Agents set it, and patches carry it.
type Position struct {
	// Run is the id of the run, and Turn its turn, from 1; empty and 0 outside of a run.
	Run  string
	Turn int
	// Message is the index of the response's first message in the conversation.
	Message int
}
