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
	"github.com/dragoman-go/dragoman/internal/text/words"
)

// Config says how the models that are opened by name behave. The zero value is
// ready.
type Config struct {
	Settings
	// Scenario is what "sim/scenario" plays; nil plays a small demonstration.
	Scenario *Scenario
	// MaxBytes bounds the body of a request that a [Handler] reads; 0 means
	// 64 MiB.
	MaxBytes int
	// Fault is the id of the [Fault] that every answer has, unless a request asks
	// for another; empty means none.
	Fault string
	// ReasoningField makes the server of OpenAI Chat one of those that are only
	// compatible: it is the member in which answers tell reasoning,
	// "reasoning_content" or "reasoning". Such a server is asked to think in all the
	// ways that compatible ones are, and counts the tokens of a stream unasked. Empty
	// means one like OpenAI's own.
	ReasoningField string
}

func (c Config) maxBytes() int { return dialect.DecodeOptions{MaxBytes: c.MaxBytes}.Limit() }

// prefix is what the names of the models may begin with.
const prefix = "sim/"

// Names are the models, with their prefix.
func Names() []string { return []string{prefix + "planner", prefix + "echo", prefix + "scenario"} }

// Open returns a model by its name: "sim/planner", "sim/echo" or "sim/scenario",
// with or without the prefix. See [Config.Open].
func Open(name string) (dragoman.Model, error) { return Config{}.Open(name) }

// Open returns a model by its name, with or without the prefix "sim/". Settings
// may follow, as in a URL: "sim/planner?rate=50&first=200ms&seed=a" has a pace and
// a seed of its own, "sim/planner?reasoning_field=reasoning_content" tells its
// reasoning in OpenAI Chat, and "sim/planner?fault=c2" has a [Fault]: such a model encodes its
// answers in the first dialect that has the fault and decodes them again, as a
// client would. The error is a [*dragoman.APIError] of the class
// [dragoman.ErrorNotFound] where there is no such model, and of
// [dragoman.ErrorBadRequest] for settings that make no sense.
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
	c.Settings = c.on(f.Dialects[0], name)
	model, err := c.model(spec)
	if err != nil {
		return nil, err
	}
	codec, _ := dialects.Named(f.Dialects[0])
	return hostile{Config: c, Model: model, spec: spec, fault: f, codec: codec}, nil
}

// modelSpec is a model's name, taken apart.
type modelSpec struct {
	base string
	pace Pace
	seed string
	// fault is the id of one; empty for none.
	fault string
	// reasoning is the member of Chat that tells it; empty for the server's.
	reasoning string
}

func parseName(name string) (modelSpec, error) {
	base, query, _ := strings.Cut(name, "?")
	spec := modelSpec{base: strings.TrimPrefix(strings.TrimPrefix(base, "models/"), prefix)}
	if !slices.Contains(Names(), prefix+spec.base) {
		return spec, &dragoman.APIError{
			Class: dragoman.ErrorNotFound, Param: "model",
			Message: fmt.Sprintf("there is no model %.80q; there are %s%s", name, strings.Join(Names(), ", "), words.Meant(prefix+spec.base, Names())),
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
	return &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "model", Message: fmt.Sprintf("the model %.80q: %s", name, why)}
}

func (s *modelSpec) set(key, value string) error {
	var err error
	switch key {
	case "first":
		s.pace.First, err = time.ParseDuration(value)
	case "rate":
		s.pace.TokensPerSecond, err = strconv.ParseFloat(value, 64)
	case "seed":
		s.seed = value
	case "fault":
		s.fault = value
	case "reasoning_field":
		s.reasoning = value
		if !isName(value) {
			return fmt.Errorf("%s=%.40q can be no member", key, value)
		}
	default:
		return fmt.Errorf("%.40q is no setting; there are fault, first, rate, reasoning_field, seed", key)
	}
	if err != nil || !s.pace.sensible() {
		return fmt.Errorf("%s=%.40s makes no sense", key, value)
	}
	return nil
}

// isName reports whether a text is a word that can name a member.
func isName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
}

// model makes a model that was named.
func (c Config) model(spec modelSpec) (dragoman.Model, error) {
	settings := c.Settings
	settings.Pace = spec.pace.or(c.Pace)
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
	own.Pace, own.origin = own.Pace.or(settings.Pace), settings.origin
	return &own, nil
}
