package dragoman

import (
	"bytes"
	"errors"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// MarshalJSON writes the response as stored JSON, with its version.
func (r Response) MarshalJSON() ([]byte, error) {
	return store("response", func(out *storer) {
		out.top()
		r.members(out)
		out.w.EndObject()
	})
}

// UnmarshalJSON reads a stored response.
func (r *Response) UnmarshalJSON(b []byte) error { return loadTop(b, "response", r, loadResponse) }

func (r *Response) store(out *storer) {
	out.w.BeginObject()
	r.members(out)
	out.w.EndObject()
}

func (r *Response) members(out *storer) {
	out.str("id", r.ID)
	out.str("model", r.Model)
	if !r.Created.IsZero() {
		// Seconds, as APIs write them: a server's absurd date has no other form.
		out.w.IntField("created", r.Created.Unix())
		out.num("created_nanos", int64(r.Created.Nanosecond()))
	}
	storeList(out, "output", r.Output, (*Message).store)
	if r.Stop != (Stop{}) {
		out.w.Key("stop")
		r.Stop.store(out)
	}
	if r.Usage != (Usage{}) {
		out.w.Key("usage")
		r.Usage.store(out)
	}
	storeList(out, "alternatives", r.Alternatives, (*Candidate).store)
	out.str("service_tier", r.ServiceTier)
	storeOpt(out, "error", r.Error, (*APIError).store)
	storeOpt(out, "origin", r.Origin, (*Origin).store)
	storeOpt(out, "native", r.Native, (*Sidecar).store)
	storeOpt(out, "extra", r.Extra, (*Extra).store)
}

func loadResponse(r *jsonwire.Reader) (p Response) {
	var created *int64
	var nanos int64
	for key := range r.Object() {
		switch string(key) {
		case "id":
			p.ID = r.String()
		case "model":
			p.Model = r.String()
		case "created":
			created = loadOpt(r, (*jsonwire.Reader).Int)
		case "created_nanos":
			nanos = r.Int()
		case "output":
			p.Output = loadList(r, loadMessage)
		case "stop":
			p.Stop = loadStop(r)
		case "usage":
			p.Usage = loadUsage(r)
		case "alternatives":
			p.Alternatives = loadList(r, loadCandidate)
		case "service_tier":
			p.ServiceTier = r.String()
		case "error":
			p.Error = loadOpt(r, loadAPIError)
		case "origin":
			p.Origin = loadOpt(r, loadOrigin)
		case "native":
			p.Native = loadOpt(r, loadSidecar)
		case "extra":
			p.Extra = loadOpt(r, loadExtra)
		default:
			r.Skip()
		}
	}
	if created != nil {
		p.Created = time.Unix(*created, nanos).UTC()
	}
	return p
}

// MarshalJSON writes the candidate.
func (c Candidate) MarshalJSON() ([]byte, error) { return store("candidate", c.store) }

// UnmarshalJSON reads a stored candidate.
func (c *Candidate) UnmarshalJSON(b []byte) error { return load(b, "candidate", c, loadCandidate) }

func (c *Candidate) store(out *storer) {
	out.w.BeginObject()
	out.num("index", int64(c.Index))
	storeList(out, "output", c.Output, (*Message).store)
	if c.Stop != (Stop{}) {
		out.w.Key("stop")
		c.Stop.store(out)
	}
	storeOpt(out, "extra", c.Extra, (*Extra).store)
	out.w.EndObject()
}

func loadCandidate(r *jsonwire.Reader) (c Candidate) {
	for key := range r.Object() {
		switch string(key) {
		case "index":
			c.Index = int(r.Int())
		case "output":
			c.Output = loadList(r, loadMessage)
		case "stop":
			c.Stop = loadStop(r)
		case "extra":
			c.Extra = loadOpt(r, loadExtra)
		default:
			r.Skip()
		}
	}
	return c
}

// MarshalJSON writes the stop.
func (s Stop) MarshalJSON() ([]byte, error) { return store("stop", s.store) }

// UnmarshalJSON reads a stored stop.
func (s *Stop) UnmarshalJSON(b []byte) error { return load(b, "stop", s, loadStop) }

func (s *Stop) store(out *storer) {
	out.w.BeginObject()
	out.str("reason", string(s.Reason))
	out.str("native", s.Native)
	out.str("sequence", s.Sequence)
	storeOpt(out, "details", s.Details, (*Native).store)
	out.w.EndObject()
}

func loadStop(r *jsonwire.Reader) (s Stop) {
	for key := range r.Object() {
		switch string(key) {
		case "reason":
			s.Reason = loadWord[StopReason](r)
		case "native":
			s.Native = r.String()
		case "sequence":
			s.Sequence = r.String()
		case "details":
			s.Details = loadOpt(r, loadNativeObject)
		default:
			r.Skip()
		}
	}
	return s
}

// MarshalJSON writes the counts that are known.
func (u Usage) MarshalJSON() ([]byte, error) { return storeSized("usage", 128, u.store) }

// UnmarshalJSON reads stored usage; a count that is absent or null is unknown.
func (u *Usage) UnmarshalJSON(b []byte) error { return load(b, "usage", u, loadUsage) }

func (u *Usage) store(out *storer) {
	count := func(name string, c Count) {
		if c.Known {
			out.w.IntField(name, c.N)
		}
	}
	out.w.BeginObject()
	count("input", u.Input)
	count("cache_read", u.CacheRead)
	count("cache_write", u.CacheWrite)
	count("output", u.Output)
	count("reasoning", u.Reasoning)
	storeOpt(out, "extra", u.Extra, (*Extra).store)
	out.w.EndObject()
}

func loadUsage(r *jsonwire.Reader) (u Usage) {
	for key := range r.Object() {
		switch string(key) {
		case "input":
			u.Input = loadCount(r)
		case "cache_read":
			u.CacheRead = loadCount(r)
		case "cache_write":
			u.CacheWrite = loadCount(r)
		case "output":
			u.Output = loadCount(r)
		case "reasoning":
			u.Reasoning = loadCount(r)
		case "extra":
			u.Extra = loadOpt(r, loadExtra)
		default:
			r.Skip()
		}
	}
	return u
}

// MarshalJSON writes the count as a number, an unknown one as null.
func (c Count) MarshalJSON() ([]byte, error) {
	return store("count", func(out *storer) {
		if c.Known {
			out.w.Int(c.N)
		} else {
			out.w.Null()
		}
	})
}

// UnmarshalJSON reads a number, or null as unknown.
func (c *Count) UnmarshalJSON(b []byte) error {
	if string(bytes.TrimSpace(b)) == "null" {
		*c = Count{}
		return nil
	}
	return load(b, "count", c, loadCount)
}

func loadCount(r *jsonwire.Reader) Count {
	if r.Null() {
		return Count{}
	}
	return Counted(r.Int())
}

// MarshalJSON writes the error. Of its cause on our side the text is kept, and
// which of this package's sentinels it wraps.
func (e APIError) MarshalJSON() ([]byte, error) { return store("error", e.store) }

// UnmarshalJSON reads a stored error.
func (e *APIError) UnmarshalJSON(b []byte) error { return load(b, "error", e, loadAPIError) }

func (e *APIError) store(out *storer) {
	out.w.BeginObject()
	out.str("class", string(e.Class))
	out.num("status", int64(e.Status))
	out.str("message", e.Message)
	out.str("type", e.Type)
	out.str("code", e.Code)
	out.str("param", e.Param)
	out.str("request_id", e.RequestID)
	if e.RetryAfter != 0 {
		out.str("retry_after", e.RetryAfter.String())
	}
	storeOpt(out, "native", e.Native, (*Native).store)
	if e.Err != nil {
		out.w.Key("cause")
		storeCause(e.Err, out)
	}
	out.w.EndObject()
}

func loadAPIError(r *jsonwire.Reader) (e APIError) {
	for key := range r.Object() {
		switch string(key) {
		case "class":
			e.Class = loadWord[ErrorClass](r)
		case "status":
			e.Status = int(r.Int())
		case "message":
			e.Message = r.String()
		case "type":
			e.Type = r.String()
		case "code":
			e.Code = r.String()
		case "param":
			e.Param = r.String()
		case "request_id":
			e.RequestID = r.String()
		case "retry_after":
			e.RetryAfter = loadDuration(r)
		case "native":
			e.Native = loadOpt(r, loadNativeObject)
		case "cause":
			if c := loadOpt(r, loadCause); c != nil {
				e.Err = c
			}
		default:
			r.Skip()
		}
	}
	return e
}

func loadDuration(r *jsonwire.Reader) time.Duration {
	text := r.String()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		r.Fail(err)
	}
	return d
}

// storedCause stands for an error that was stored: its text, and the
// sentinels of this package it wrapped.
type storedCause struct {
	text string
	is   []string
}

// sentinels are the errors whose identity survives storing: it decides what a
// caller does next.
var sentinels = []struct {
	name string
	err  error
}{
	{"incomplete_stream", ErrIncompleteStream},
	{"invalid", ErrInvalid},
	{"too_large", ErrTooLarge},
	{"unsupported", ErrUnsupported},
	{"version", ErrVersion},
}

func (c *storedCause) Error() string { return c.text }

func (c *storedCause) Is(target error) bool {
	for _, s := range sentinels {
		if target == s.err {
			for _, name := range c.is {
				if name == s.name {
					return true
				}
			}
		}
	}
	return false
}

func storeCause(err error, out *storer) {
	var is []string
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			is = append(is, s.name)
		}
	}
	out.w.BeginObject()
	out.str("text", err.Error())
	storeList(out, "is", is, storeString)
	out.w.EndObject()
}

func loadCause(r *jsonwire.Reader) (c storedCause) {
	for key := range r.Object() {
		switch string(key) {
		case "text":
			c.text = r.String()
		case "is":
			c.is = loadList(r, loadWord[string])
		default:
			r.Skip()
		}
	}
	return c
}
