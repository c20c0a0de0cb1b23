package agent

import (
	"context"

	dragoman "github.com/dragoman-go/dragoman"
)

// detacher returns the store for the media of the run: its own store or that of the outer
// run, or nil if neither stores media.
func (r *run) detacher() mediaDetacher {
	if d, ok := r.store.(mediaDetacher); ok {
		return d
	}
	return r.media
}

// mediaDetacherFrom returns the detacher of the run that calls a tool, or nil.
func mediaDetacherFrom(ctx context.Context) mediaDetacher {
	if r := runFrom(ctx); r != nil {
		return r.detacher()
	}
	return nil
}

// detach replaces the content of large media with references. A nil d leaves the content in
// the state. Other states that share messages with this one do not change.
func (s *state) detach(ctx context.Context, d mediaDetacher) error {
	if d == nil || !s.hasMedia() {
		return nil
	}
	return s.replaceMedia(func(ms []dragoman.Message) ([]dragoman.Message, error) { return d.Detach(ctx, ms) })
}

// expand replaces references with the content of the media.
func (s *state) expand(ctx context.Context, e expander) error {
	if e == nil || !s.hasMedia() {
		return nil
	}
	return s.replaceMedia(func(ms []dragoman.Message) ([]dragoman.Message, error) { return e.Expand(ctx, ms) })
}

// hasMedia reports whether messages or results of the state have media.
func (s *state) hasMedia() bool {
	for _, ms := range [][]dragoman.Message{s.Seen, s.Messages} {
		for i := range ms {
			if anyMedia(ms[i].Parts) {
				return true
			}
		}
	}
	for _, res := range s.Settled {
		if anyMedia(res.Content) {
			return true
		}
	}
	return false
}

func anyMedia(parts []dragoman.Part) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Media:
			return true
		case *dragoman.ToolResult:
			if p != nil && anyMedia(p.Content) {
				return true
			}
		}
	}
	return false
}

// replaceMedia replaces the messages and results of the state with the results of f.
func (s *state) replaceMedia(f func([]dragoman.Message) ([]dragoman.Message, error)) (err error) {
	if s.Seen, err = f(s.Seen); err != nil {
		return errorf("media of the state: %w", err)
	}
	if s.Messages, err = f(s.Messages); err != nil {
		return errorf("media of the state: %w", err)
	}
	if len(s.Settled) == 0 {
		return nil
	}
	ms, err := f([]dragoman.Message{dragoman.ToolResults(s.Settled...)})
	if err != nil {
		return errorf("media of the state: %w", err)
	}
	settled := make([]*dragoman.ToolResult, len(s.Settled))
	for i := range settled {
		settled[i] = ms[0].Parts[i].(*dragoman.ToolResult)
	}
	s.Settled = settled
	return nil
}
