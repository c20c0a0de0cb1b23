package dragoman

// Collector folds the events of a stream into a response. The zero value is
// ready. It is not safe for concurrent use.
type Collector struct {
	resp    Response
	choices []collected
	err     *APIError
	done    bool
}

type collected struct {
	parts  []Part // by index; nil while open
	starts []*PartStart
	stop   Stop
}

// maxCollected bounds parts and choices: an index from a hostile stream must
// not decide how much memory we take. Decoders hand out indexes in order, so
// no honest stream comes near it.
const maxCollected = 1 << 16

// Add takes the next event.
func (c *Collector) Add(ev Event) {
	switch ev := ev.(type) {
	case *ResponseStart:
		c.resp = ev.Response
		c.resp.Output = nil
	case *PartStart:
		if ch := c.choice(ev.Choice); ch != nil && ev.Index >= 0 && ev.Index < maxCollected {
			for len(ch.parts) <= ev.Index {
				ch.parts, ch.starts = append(ch.parts, nil), append(ch.starts, nil)
			}
			ch.starts[ev.Index] = ev
		}
	case *PartEnd:
		if ch := c.choice(ev.Choice); ch != nil && ev.Index >= 0 && ev.Index < len(ch.parts) {
			ch.parts[ev.Index] = ev.Part
		}
	case *ResponseEnd:
		c.end(ev)
	case *StreamError:
		c.err, c.done = ev.Err, true
		c.resp.Error = ev.Err
	}
}

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
	r.Usage = c.resp.Usage.Merge(ev.Usage)
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

// Response returns what was collected so far, and the error that ended the
// stream, if one did. Before the end it holds the parts that are complete and
// the error is [ErrIncompleteStream].
func (c *Collector) Response() (*Response, error) {
	r := c.resp
	r.Output, r.Alternatives = nil, nil
	for i := range c.choices {
		out := c.choices[i].messages(c.resp.Origin)
		if i == 0 {
			r.Output, r.Stop = out, c.choices[i].stop
			continue
		}
		r.Alternatives = append(r.Alternatives, Candidate{Index: i, Output: out, Stop: c.choices[i].stop})
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
	current := -1
	for i, p := range ch.parts {
		if p == nil {
			continue
		}
		start := ch.starts[i]
		if start.Message != current || out == nil {
			m := Message{Role: RoleAssistant, Origin: origin}
			if start.Header != nil {
				m = *start.Header
				m.Parts = nil
			}
			out, current = append(out, m), start.Message
		}
		m := &out[len(out)-1]
		m.Parts = append(m.Parts, p)
	}
	return out
}

// Collect folds a stream of events. It stops at the first error and returns
// what had arrived with it.
func Collect(events func(yield func(Event, error) bool)) (*Response, error) {
	var c Collector
	for ev, err := range events {
		if err != nil {
			r, _ := c.Response()
			return r, err
		}
		c.Add(ev)
	}
	return c.Response()
}
