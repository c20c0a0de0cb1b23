package codectest

import (
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
)

// Order checks the guarantees of a decoder on its events, as documented for
// [dragoman.Event].
func Order(evs []dragoman.Event) error {
	o := order{next: map[int]int{}, open: map[part]bool{}, headed: map[part]bool{}}
	for i, ev := range evs {
		if err := o.add(ev); err != nil {
			return fmt.Errorf("event %d, %s: %w", i, ev.Type(), err)
		}
	}
	if !o.ended {
		return errors.New("the stream has no final event")
	}
	return nil
}

// part identifies a part, or a message, of a choice.
type part struct{ choice, index int }

type order struct {
	started, ended bool
	next           map[int]int // index of the next part, by choice
	open, headed   map[part]bool
}

func (o *order) add(ev dragoman.Event) error {
	if ev.Type() == "chunk" {
		return nil
	}
	if o.ended {
		return errors.New("after the end")
	}
	if (ev.Type() == "response_start") == o.started {
		return fmt.Errorf("the start must be the first event and occur once; already started: %v", o.started)
	}
	o.started = true
	switch ev := ev.(type) {
	case *dragoman.PartStart:
		return o.start(ev)
	case *dragoman.PartDelta:
		if !o.open[part{ev.Choice, ev.Index}] || ev.Text == "" && ev.Extra == nil {
			return fmt.Errorf("%q for part %d, open: %v", ev.Text, ev.Index, o.open)
		}
	case *dragoman.PartEnd:
		if !o.open[part{ev.Choice, ev.Index}] || ev.Part == nil {
			return fmt.Errorf("part %d, %v, open: %v", ev.Index, ev.Part, o.open)
		}
		delete(o.open, part{ev.Choice, ev.Index})
	case *dragoman.ResponseEnd, *dragoman.StreamError:
		if len(o.open) > 0 {
			return fmt.Errorf("%d parts are open", len(o.open))
		}
		o.ended = true
	}
	return nil
}

func (o *order) start(ev *dragoman.PartStart) error {
	if ev.Index != o.next[ev.Choice] || ev.Part == nil {
		return fmt.Errorf("part %d, %v, of choice %d, want %d", ev.Index, ev.Part, ev.Choice, o.next[ev.Choice])
	}
	message := part{ev.Choice, ev.Message}
	if (ev.Header == nil) != o.headed[message] {
		return fmt.Errorf("header %v of part %d of message %d; already had one: %v", ev.Header, ev.Index, ev.Message, o.headed[message])
	}
	o.headed[message] = true
	o.next[ev.Choice]++
	o.open[part{ev.Choice, ev.Index}] = true
	return nil
}

// OneMessage checks that each choice is one message, with a header on its first part.
func OneMessage(evs []dragoman.Event) error {
	for i, ev := range evs {
		if start, ok := ev.(*dragoman.PartStart); ok && (start.Message != 0 || (start.Header != nil) != (start.Index == 0)) {
			return fmt.Errorf("event %d: part %d of message %d has header %v", i, start.Index, start.Message, start.Header)
		}
	}
	return nil
}
