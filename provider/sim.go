package provider

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/sim"
)

// simName is the provider that needs no network: package sim.
const simName = "sim"

// openSim opens a model of the simulator, such as "planner".
func (c *Config) openSim(model string) (dragoman.Model, error) {
	m, err := sim.Open(model)
	var e *dragoman.APIError
	if errors.As(err, &e) {
		return nil, &SpecError{Spec: simName + "/" + model, Reason: e.Message}
	}
	if err == nil && c.Log != nil && c.Log.Enabled(context.Background(), slog.LevelDebug) {
		return loggedSim{m, simName + "/" + model, c.Log}, nil
	}
	return m, err
}

// loggedSim logs the requests and responses of the simulator. They have no wire form and
// contain no secrets.
type loggedSim struct {
	dragoman.Model
	name string
	log  *slog.Logger
}

// String returns the model's name.
func (s loggedSim) String() string { return s.name }

// Generate implements [dragoman.Model].
func (s loggedSim) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	s.logRequest(ctx, req)
	resp, err := s.Model.Generate(ctx, req)
	s.logResponse(ctx, resp, err)
	return resp, err
}

// Stream implements [dragoman.Model].
func (s loggedSim) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		s.logRequest(ctx, req)
		var complete dragoman.Collector
		for ev, err := range s.Model.Stream(ctx, req) {
			if err != nil {
				s.logResponse(ctx, nil, err)
				yield(ev, err)
				return
			}
			complete.Add(ev)
			if !yield(ev, nil) {
				return
			}
		}
		resp, err := complete.Response()
		s.logResponse(ctx, resp, err)
	}
}

func (s loggedSim) logRequest(ctx context.Context, req *dragoman.Request) {
	s.log.LogAttrs(ctx, slog.LevelDebug, "model request", slog.String("model", s.name), canonical("before", req))
}

func (s loggedSim) logResponse(ctx context.Context, resp *dragoman.Response, err error) {
	attrs := []slog.Attr{slog.String("model", s.name)}
	if resp != nil {
		attrs = append(attrs, slog.String("stop", string(resp.Stop.Reason)), canonical("body", resp))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	s.log.LogAttrs(ctx, slog.LevelDebug, "model response", attrs...)
}

// canonical returns the stored form of a value, shortened for the log.
func canonical(key string, v json.Marshaler) slog.Attr {
	b, err := v.MarshalJSON()
	if err != nil {
		return slog.String(key, err.Error())
	}
	if len(b) > maxLogged {
		return slog.String(key, strings.ToValidUTF8(string(b[:maxLogged]), "?")+"…")
	}
	return slog.String(key, string(b))
}
