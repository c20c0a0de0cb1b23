package dragoman

import (
	"errors"
	"fmt"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrInvalid says that a canonical value was built in a way that no wire could
// express: a nil part, a number that is none.
var ErrInvalid = errors.New("dragoman: invalid value")

// Validate reports what makes a request impossible to encode, each with its
// place. Encoders call it; a request that a decoder returned always passes.
func (r *Request) Validate() error {
	var v validator
	if r == nil {
		v.bad("", "a nil request")
		return v.errs[0]
	}
	v.parts("/instructions", r.Instructions)
	v.messages("/messages", r.Messages)
	for i := range r.Tools {
		if t := &r.Tools[i]; t.Kind == codes.ToolHosted && t.Source == nil {
			v.bad(fmt.Sprintf("/tools/%d", i), "a hosted tool needs its Source")
		}
	}
	v.number("/sampling/temperature", r.Sampling.Temperature)
	v.number("/sampling/top_p", r.Sampling.TopP)
	v.number("/sampling/frequency_penalty", r.Sampling.FrequencyPenalty)
	v.number("/sampling/presence_penalty", r.Sampling.PresencePenalty)
	return errors.Join(v.errs...)
}

// Validate reports what makes a response impossible to encode.
func (r *Response) Validate() error {
	var v validator
	if r == nil {
		v.bad("", "a nil response")
		return v.errs[0]
	}
	v.messages("/output", r.Output)
	for i := range r.Alternatives {
		v.messages(fmt.Sprintf("/alternatives/%d/output", i), r.Alternatives[i].Output)
	}
	return errors.Join(v.errs...)
}

// ValidateEvent reports what makes an event impossible to encode.
func ValidateEvent(ev Event) error {
	var v validator
	if isNilEvent(ev) {
		v.bad("", "a nil event")
		return v.errs[0]
	}
	switch ev := ev.(type) {
	case *PartStart:
		v.part("/part", ev.Part)
	case *PartEnd:
		v.part("/part", ev.Part)
	}
	return errors.Join(v.errs...)
}

type validator struct{ errs []error }

func (v *validator) bad(path, reason string) {
	if path != "" {
		reason = "at " + path + ": " + reason
	}
	v.errs = append(v.errs, fmt.Errorf("%w: %s", ErrInvalid, reason))
}

func (v *validator) messages(path string, ms []Message) {
	for i := range ms {
		for j, p := range ms[i].Parts {
			if !sound(p) {
				v.part(fmt.Sprintf("%s/%d/parts/%d", path, i, j), p)
			}
		}
	}
}

func (v *validator) parts(path string, ps []Part) {
	for i, p := range ps {
		if !sound(p) {
			v.part(fmt.Sprintf("%s/%d", path, i), p)
		}
	}
}

// part says what is wrong with a part that is not sound.
func (v *validator) part(path string, p Part) {
	if isNilPart(p) {
		v.bad(path, "a nil part")
		return
	}
	switch p := p.(type) {
	case *ToolResult:
		v.parts(path+"/content", p.Content)
	case *Media:
		if p.Attachment == "" {
			return
		}
		v.errs = append(v.errs, fmt.Errorf("%w: at %s: attachment %q has no content; expand it with the session that stores it", ErrAttachment, path, p.Attachment))
	}
}

// sound reports whether a part is there, and all that it holds: nearly every one is,
// and only for the others a place is worth writing down.
func sound(p Part) bool {
	if isNilPart(p) {
		return false
	}
	switch p := p.(type) {
	case *Media:
		return p.Attachment == ""
	case *ToolResult:
		for _, inner := range p.Content {
			if !sound(inner) {
				return false
			}
		}
	}
	return true
}

func (v *validator) number(path string, n *Number) {
	if n == nil {
		return
	}
	if raw := jsontext.Value(*n); !raw.IsValid() || raw.Kind() != '0' {
		v.bad(path, fmt.Sprintf("%.40q is not a number", string(*n)))
	}
}
