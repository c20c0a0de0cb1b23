package sim

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// Config holds the settings of models that are opened by name. The zero value is ready to
// use.
type Config struct {
	Settings
	// Scenario is the scenario that "sim/scenario" plays. Nil means a small demonstration.
	Scenario *Scenario
	// MaxBytes limits the body of a request that a [Handler] reads. 0 means 64 MiB.
	MaxBytes int
	// Fault is the id of the [Fault] of every response, unless a request asks for another
	// one. Empty means none.
	Fault string
	// ReasoningField, if set, makes the OpenAI Chat server behave like a compatible server
	// instead of OpenAI: it sends reasoning in this field, "reasoning_content" or
	// "reasoning", accepts the reasoning settings of several vendors, and always sends usage
	// in streams.
	ReasoningField string
}

func (c Config) maxBytes() int { return dialect.DecodeOptions{MaxBytes: c.MaxBytes}.Limit() }

// prefix is the optional prefix of model names.
const prefix = "sim/"

// Names returns the names of the models, with their prefix.
func Names() []string { return []string{prefix + "planner", prefix + "echo", prefix + "scenario"} }

// Open returns a model by its name: "sim/planner", "sim/echo" or "sim/scenario",
// with or without the prefix. See [Config.Open].
func Open(name string) (dragoman.Model, error) { return Config{}.Open(name) }

// Open returns a model by its name, with or without the prefix "sim/". The name may have
// settings, like the query of a URL:
//
//   - "sim/planner?rate=50&first=200ms&seed=a" sets a pace and a seed.
//   - "sim/planner?reasoning_field=reasoning_content" sets the field for reasoning in OpenAI
//     Chat.
//   - "sim/planner?fault=c2" sets a [Fault]. Such a model encodes its responses in the first
//     dialect that has the fault, and decodes them again like a client.
//
// The error is a [*dragoman.APIError], of class [dragoman.ErrorNotFound] for an unknown model
// and [dragoman.ErrorBadRequest] for invalid settings.
func (c Config) Open(name string) (dragoman.Model, error) {
	spec, err := parseName(name)
	if err != nil {
		return nil, err
	}
	id := cmp.Or(spec.fault, c.Fault)
	if id == "" {
		return c.model(spec)
	}
	f, err := faultNamed(id)
	if err != nil {
		return nil, err
	}
	c.Settings = c.forDialect(f.Dialects[0], name)
	model, err := c.model(spec)
	if err != nil {
		return nil, err
	}
	codec, _ := dialects.Named(f.Dialects[0])
	return hostile{Config: c, Model: model, spec: spec, fault: f, codec: codec}, nil
}

// modelSpec is a parsed model name.
type modelSpec struct {
	base string
	pace Pace
	seed string
	// fault is the id of a fault, or "".
	fault string
	// reasoning is the Chat field for reasoning, or "" for the server's setting.
	reasoning string
}

func parseName(name string) (modelSpec, error) {
	base, query, _ := strings.Cut(name, "?")
	spec := modelSpec{base: strings.TrimPrefix(strings.TrimPrefix(base, "models/"), prefix)}
	if !slices.Contains(Names(), prefix+spec.base) {
		return spec, &dragoman.APIError{
			Class: dragoman.ErrorNotFound, Param: "model",
			Message: fmt.Sprintf("unknown model %.80q: known models are %s%s", name, strings.Join(Names(), ", "), textkit.Suggest(prefix+spec.base, Names())),
		}
	}
	settings, err := url.ParseQuery(query)
	if err != nil {
		return spec, badName(name, err.Error())
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		values := settings[key]
		if err := spec.set(key, values[len(values)-1]); err != nil {
			return spec, badName(name, err.Error())
		}
	}
	return spec, nil
}

func badName(name, why string) error {
	return &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "model", Message: fmt.Sprintf("model %.80q: %s", name, why)}
}

func (s *modelSpec) set(key, value string) error {
	var err error
	switch key {
	case "first":
		s.pace.FirstToken, err = time.ParseDuration(value)
	case "rate":
		s.pace.TokensPerSecond, err = strconv.ParseFloat(value, 64)
	case "seed":
		s.seed = value
	case "fault":
		s.fault = value
	case "reasoning_field":
		s.reasoning = value
		if !isName(value) {
			return fmt.Errorf("%s=%.40q is not a field name", key, value)
		}
	default:
		return fmt.Errorf("unknown setting %.40q: known settings are fault, first, rate, reasoning_field, seed", key)
	}
	if err != nil || !s.pace.isValid() {
		return fmt.Errorf("invalid value %s=%.40s", key, value)
	}
	return nil
}

// isName reports whether a text can be the name of a field.
func isName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
}

// model returns the model of a parsed name.
func (c Config) model(spec modelSpec) (dragoman.Model, error) {
	settings := c.Settings
	settings.Pace = spec.pace.orElse(c.Pace)
	if spec.seed != "" {
		settings.Seed = spec.seed
	}
	switch spec.base {
	case "planner":
		return Planner{settings}, nil
	case "echo":
		return Echo{settings}, nil
	}
	played := c.Scenario
	if played == nil {
		var err error
		if played, err = ParseScenario("demo.scenario", demo); err != nil {
			return nil, err
		}
		return &Scenario{settings, played.name, played.turns}, nil
	}
	own := *played
	if own.Seed == "" {
		own.Seed = settings.Seed
	}
	own.Pace, own.origin = own.Pace.orElse(settings.Pace), settings.origin
	return &own, nil
}
