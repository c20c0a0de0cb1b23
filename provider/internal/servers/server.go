package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/targets"
)

// Server describes a server, or a family of models. It is an extension made of data.
type Server struct {
	Name, Description string
	// Requires and Forbids are the tags that turn it on.
	Requires, Forbids []extension.Tag
	// Capabilities changes the capabilities of the target. The name of the model is in lower
	// case; nil changes nothing.
	Capabilities func(c *targets.Capabilities, model string)
	// Vendor marks the server of the dialect's vendor. Its rules apply to requests that
	// are encoded; requests in its own dialect may pass through.
	Vendor bool
	// Knobs are the settings that it supports.
	Knobs []Knob
	// Fix changes the payload in ways that no capability describes; nil changes nothing.
	Fix func(x *extension.Exchange) error
}

// Knob is a setting that is written into the payload if the configuration sets it.
type Knob struct {
	// Setting is its name in the configuration, and Path its path in the payload.
	Setting, Path string
	Label         string
	// Type is the type of its values: "boolean", "integer", "string", "object".
	Type string
	// Choices are the allowed values of a string; none means any.
	Choices []string
}

// Info returns the tags of the server.
func (s Server) Info() extension.Info {
	return extension.Info{Name: s.Name, Version: "1", Description: s.Description, Requires: s.Requires, Forbids: s.Forbids}
}

// Prepare sets the capabilities of the target.
func (s Server) Prepare(_ context.Context, x *extension.Exchange) error {
	if s.Capabilities != nil {
		s.Capabilities(&x.Target.Caps, strings.ToLower(x.Target.Model))
	}
	return nil
}

// Decorate writes the configured settings into the payload.
func (s Server) Decorate(_ context.Context, x *extension.Exchange) error {
	var settings map[string]json.RawMessage
	if _, err := x.Config(&settings); err != nil {
		return fmt.Errorf("its settings: %w", err)
	}
	var wrong []error
	for _, k := range s.Knobs {
		value, asked := settings[k.Setting]
		if !asked {
			continue
		}
		if err := k.check(value); err != nil {
			wrong = append(wrong, fmt.Errorf("the setting %s: %w", k.Setting, err))
			continue
		}
		if slices.Contains(strings.Fields(x.Target.Caps.Refuses), k.Path) {
			x.Report.Addf(dragoman.Dropped, dragoman.Warn, "/"+k.Path, "the model does not support %s", k.Path)
			continue
		}
		wrong = append(wrong, x.Payload.Set(k.Path, value))
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !slices.ContainsFunc(s.Knobs, func(k Knob) bool { return k.Setting == name }) {
			wrong = append(wrong, fmt.Errorf("unknown setting %q", name))
		}
	}
	if s.Fix != nil {
		wrong = append(wrong, s.Fix(x))
	}
	return errors.Join(wrong...)
}

// check validates a value.
func (k Knob) check(value json.RawMessage) error {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	ok := false
	switch v := v.(type) {
	case bool:
		ok = k.Type == "boolean"
	case float64:
		ok = k.Type == "integer" && v == float64(int64(v))
	case string:
		ok = k.Type == "string"
		if ok && len(k.Choices) > 0 && !slices.Contains(k.Choices, v) {
			return fmt.Errorf("%q is not one of %s", v, strings.Join(k.Choices, ", "))
		}
	case map[string]any:
		ok = k.Type == "object"
	}
	if !ok {
		return fmt.Errorf("want %s", k.Type)
	}
	return nil
}

// Idle reports whether requests in the server's dialect may pass through: no
// setting is set, and nothing deviates from the dialect.
func (s Server) Idle(settings json.RawMessage) bool {
	return (s.Vendor || s.Capabilities == nil) && s.Fix == nil && len(settings) == 0
}

// ConfigSchema returns the JSON Schema of the settings.
func (s Server) ConfigSchema() json.RawMessage {
	var o extension.Object
	err := o.Set("type", "object")
	for _, k := range s.Knobs {
		at := "/properties/" + k.Setting
		err = errors.Join(err, o.Set(at+"/type", k.Type), o.Set(at+"/description", k.Label))
		if len(k.Choices) > 0 {
			err = errors.Join(err, o.Set(at+"/enum", k.Choices))
		}
	}
	if err = errors.Join(err, o.Set("additionalProperties", false)); err != nil {
		return json.RawMessage(`{}`)
	}
	return o.JSON()
}

// Elements describes how to display the settings.
func (s Server) Elements(extension.Env) []extension.Element {
	var out []extension.Element
	for _, k := range s.Knobs {
		e := extension.Element{Kind: "line", Setting: k.Setting, Label: k.Label}
		switch {
		case k.Type == "boolean":
			e.Kind = "toggle"
		case k.Type == "integer":
			e.Kind = "number"
		case len(k.Choices) > 0:
			e.Kind = "select"
			for _, c := range k.Choices {
				value, _ := json.Marshal(c) // a string always marshals
				e.Choices = append(e.Choices, extension.Choice{Value: value, Label: c})
			}
		}
		out = append(out, e)
	}
	return out
}
