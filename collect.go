package dragoman

import (
	"slices"
	"strings"
)

// Collector folds the events of a stream into a response. The zero value is ready to use. A
// Collector is not safe for concurrent use.
type Collector struct {
	resp    Response
	choices []collected
	output  []Message // output of choice 0 from the ResponseEnd; nil: use the output collected from the events
	slots   int       // part slots taken, over all choices
	err     *APIError
	done    bool
	broken  bool // a StreamError arrived
}

type collected struct {
	parts  []Part            // by index; nil while open
	texts  map[int]*openText // text of open parts, by index
	starts []*PartStart      // by index; nil where an index was skipped
	finals []*Message        // by index; headers from PartEnd events
	stop   Stop
}

// maxCollected bounds the number of choices, and the number of parts over all choices, so that
// an index in a hostile stream does not determine how much memory we allocate (quirk C4).
// Decoders assign indexes in order, so valid streams stay far below it.
const maxCollected = 1 << 16

// Add adds the next event. It ignores a nil event, a nil pointer in an event, and a PartEnd
// with a nil part.
func (c *Collector) Add(ev Event) {
	if c == nil || isNilEvent(ev) {
		return
	}
	switch ev := ev.(type) {
	case *ResponseStart:
		c.resp = ev.Response
		c.resp.Output = nil
	case *PartStart:
		if ch := c.choice(ev.Choice); ch != nil && ev.Index >= 0 && ev.Index-len(ch.parts) < maxCollected-c.slots {
			for len(ch.parts) <= ev.Index {
				ch.parts, ch.starts, ch.finals = append(ch.parts, nil), append(ch.starts, nil), append(ch.finals, nil)
				c.slots++
			}
			ch.starts[ev.Index] = ev
		}
	case *PartDelta:
		c.addText(ev)
	case *PartEnd:
		if ev.Choice < 0 || ev.Choice >= len(c.choices) {
			return
		}
		// Ignore a PartEnd without a PartStart.
		if ch := &c.choices[ev.Choice]; ev.Index >= 0 && ev.Index < len(ch.parts) && ch.starts[ev.Index] != nil && !isNilPart(ev.Part) {
			ch.parts[ev.Index], ch.finals[ev.Index] = ev.Part, ev.Header
			delete(ch.texts, ev.Index)
		}
	case *ResponseEnd:
		c.end(ev)
	case *StreamError:
		// A StreamError without an error means that the stream was cut off.
		c.err, c.done, c.broken = ev.Err, ev.Err != nil, true
		c.resp.Error = ev.Err
		c.resp.Usage = c.resp.Usage.Merge(ev.Usage)
	}
}

// addText stores the text of a part until the part ends, so that the text is not lost if the
// stream is cut off.
func (c *Collector) addText(ev *PartDelta) {
	if ev.Kind != kindText || ev.Text == "" || ev.Choice < 0 || ev.Choice >= len(c.choices) {
		return
	}
	ch := &c.choices[ev.Choice]
	if ev.Index < 0 || ev.Index >= len(ch.starts) || ch.starts[ev.Index] == nil || ch.parts[ev.Index] != nil {
		return
	}
	text := ch.texts[ev.Index]
	if text == nil {
		text = new(openText)
		if ch.texts == nil {
			ch.texts = map[int]*openText{}
		}
		ch.texts[ev.Index] = text
	}
	text.add(ev.Text)
}

// openText collects the text of an open part in blocks, each twice as large as the one
// before. Blocks are not copied, because the end of a part usually has the whole text.
type openText struct {
	full []string
	last strings.Builder
}

func (t *openText) add(s string) {
	if t.last.Cap()-t.last.Len() < len(s) {
		size := max(64, 2*t.last.Cap(), len(s))
		if t.last.Len() > 0 {
			t.full = append(t.full, t.last.String())
			t.last.Reset()
		}
		t.last.Grow(size)
	}
	t.last.WriteString(s)
}

func (t *openText) String() string { return strings.Join(t.full, "") + t.last.String() }

func (c *Collector) end(ev *ResponseEnd) {
	c.done = true
	r := ev.Response
	if r.ID == "" {
		r.ID = c.resp.ID
	}
	if r.Model == "" {
		r.Model = c.resp.Model
	}
	if r.Created.IsZero() {
		r.Created = c.resp.Created
	}
	if r.ServiceTier == "" {
		r.ServiceTier = c.resp.ServiceTier
	}
	if r.Origin == nil {
		r.Origin = c.resp.Origin
	}
	if r.Extra == nil {
		r.Extra = c.resp.Extra
	}
	if r.Failover == nil {
		r.Failover = c.resp.Failover
	}
	r.Usage = c.resp.Usage.Merge(ev.Usage)
	c.output, r.Output = r.Output, nil
	c.resp = r
	if ch := c.choice(0); ch != nil {
		ch.stop = ev.Stop
	}
	for i, s := range ev.Stops {
		if ch := c.choice(i + 1); ch != nil {
			ch.stop = s
		}
	}
}

func (c *Collector) choice(i int) *collected {
	if i < 0 || i >= maxCollected {
		return nil
	}
	for len(c.choices) <= i {
		c.choices = append(c.choices, collected{})
	}
	return &c.choices[i]
}

// Response returns what has been collected so far.
//
//   - If the stream ended with an error, Response returns that error. The response holds what
//     had arrived, the reported usage, and the stop reason [StopError].
//   - If the stream has not ended, the error is [ErrIncompleteStream]. The response holds the
//     complete parts, and the text so far of the incomplete ones.
func (c *Collector) Response() (*Response, error) {
	if c == nil {
		return &Response{}, ErrIncompleteStream
	}
	r := c.resp
	r.Output, r.Alternatives = nil, nil
	if c.broken {
		r.Stop = Stop{Reason: StopError}
	}
	for i := range c.choices {
		out, stop := c.choices[i].messages(c.resp.Origin), c.choices[i].stop
		if c.broken {
			stop = Stop{Reason: StopError}
		}
		if i == 0 {
			r.Output, r.Stop = out, stop
			if c.output != nil {
				r.Output = c.output
			}
			continue
		}
		r.Alternatives = append(r.Alternatives, Candidate{Index: i, Output: out, Stop: stop})
	}
	switch {
	case c.err != nil:
		return &r, c.err
	case !c.done:
		return &r, ErrIncompleteStream
	default:
		return &r, nil
	}
}

func (ch *collected) messages(origin *Origin) []Message {
	var out []Message
	var places []int      // the output position of each message in out
	var opened *PartStart // the last start with a header whose part did not end
	for i, p := range ch.parts {
		start := ch.starts[i]
		if text := ch.texts[i]; p == nil && text != nil {
			p = &Text{Text: text.String()}
		}
		if p == nil {
			if start != nil && start.Header != nil {
				opened = start
			}
			continue
		}
		// Parts of two messages may overlap in time.
		at, found := slices.BinarySearch(places, start.Message)
		if !found {
			header := start.Header
			if header == nil && opened != nil && opened.Message == start.Message {
				header = opened.Header
			}
			m := Message{Role: RoleAssistant, Origin: origin}
			if header != nil {
				m = *header
				m.Parts = nil
			}
			out, places = slices.Insert(out, at, m), slices.Insert(places, at, start.Message)
		}
		parts := append(out[at].Parts, p)
		if ch.finals[i] != nil {
			out[at] = *ch.finals[i]
		}
		out[at].Parts = parts
	}
	return out
}

// Collect folds a stream of events into a response. It stops at the first error and returns it
// with what had arrived. For a nil stream, the error is [ErrIncompleteStream].
func Collect(events func(yield func(Event, error) bool)) (*Response, error) {
	var c Collector
	if events == nil {
		return c.Response()
	}
	for ev, err := range events {
		if err != nil {
			r, _ := c.Response()
			return r, err
		}
		c.Add(ev)
	}
	return c.Response()
}
