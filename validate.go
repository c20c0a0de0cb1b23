package dragoman

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrInvalid reports a value that no dialect can express: a nil part, a number that is
// not JSON, an unknown kind of media.
var ErrInvalid = errors.New("dragoman: invalid value")

// Validate reports everything that makes the request impossible to encode, with its path.
// Encoders call it. A request that a decoder returned is always valid.
func (r *Request) Validate() error {
	var v validator
	if r == nil {
		v.bad("", "the request is nil")
		return v.errs[0]
	}
	v.parts("/instructions", r.Instructions)
	v.messages("/messages", r.Messages)
	for i := range r.Tools {
		v.tool(i, &r.Tools[i])
	}
	if o := r.Output; o != nil {
		v.oneOf("/output/kind", o.Kind, outputKinds)
		v.oneOf("/output/strict", o.Strict, strictness)
	}
	if r.Reasoning != nil {
		v.oneOf("/reasoning/mode", r.Reasoning.Mode, reasoningModes)
	}
	v.number("/sampling/temperature", r.Sampling.Temperature)
	v.number("/sampling/top_p", r.Sampling.TopP)
	v.number("/sampling/frequency_penalty", r.Sampling.FrequencyPenalty)
	v.number("/sampling/presence_penalty", r.Sampling.PresencePenalty)
	return errors.Join(v.errs...)
}

// Validate reports everything that makes the response impossible to encode.
func (r *Response) Validate() error {
	var v validator
	if r == nil {
		v.bad("", "the response is nil")
		return v.errs[0]
	}
	v.messages("/output", r.Output)
	for i := range r.Alternatives {
		v.messages(fmt.Sprintf("/alternatives/%d/output", i), r.Alternatives[i].Output)
	}
	return errors.Join(v.errs...)
}

// ValidateEvent reports everything that makes an event impossible to encode.
func ValidateEvent(ev Event) error {
	var v validator
	if isNilEvent(ev) {
		v.bad("", "the event is nil")
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

// The allowed values of string fields, as documented on the fields. An empty string is the zero
// value of a field, which some fields do not allow.
var (
	mediaKinds     = []string{codes.MediaImage, codes.MediaAudio, codes.MediaVideo, codes.MediaFile}
	toolKinds      = []string{codes.ToolFunction, codes.ToolFreeform, codes.ToolHosted}
	strictness     = []string{codes.StrictOff, codes.StrictOn, codes.StrictAuto, codes.StrictUnset}
	payloads       = []string{codes.PayloadObject, codes.PayloadText}
	outcomes       = []string{codes.OutcomeUnknown, codes.OutcomeOK, codes.OutcomeError}
	outputKinds    = []string{"", codes.OutputText, codes.OutputJSON, codes.OutputSchema}
	reasoningModes = []string{codes.ReasoningDefault, codes.ReasoningOff, codes.ReasoningAdaptive, codes.ReasoningBudget}
)

type validator struct{ errs []error }

// oneOf reports a value that is not in the list.
func (v *validator) oneOf(path, value string, allowed []string) {
	if slices.Contains(allowed, value) {
		return
	}
	var names []string
	for _, a := range allowed {
		names = append(names, strconv.Quote(a))
	}
	v.bad(path, fmt.Sprintf("unknown value %.40q: use %s", value, strings.Join(names, ", ")))
}

func (v *validator) tool(i int, t *ToolSpec) {
	path := "/tools/" + strconv.Itoa(i)
	v.oneOf(path+"/kind", t.Kind, toolKinds)
	v.oneOf(path+"/strict", t.Strict, strictness)
	if t.Kind == codes.ToolHosted && t.Source == nil {
		v.bad(path, "a hosted tool needs its Source")
	}
}

func (v *validator) bad(path, reason string) {
	if path != "" {
		reason = "at " + path + ": " + reason
	}
	v.errs = append(v.errs, fmt.Errorf("%w: %s", ErrInvalid, reason))
}

func (v *validator) messages(path string, ms []Message) {
	for i := range ms {
		for j, p := range ms[i].Parts {
			if !isValidPart(p) {
				v.part(fmt.Sprintf("%s/%d/parts/%d", path, i, j), p)
			}
		}
	}
}

func (v *validator) parts(path string, ps []Part) {
	for i, p := range ps {
		if !isValidPart(p) {
			v.part(fmt.Sprintf("%s/%d", path, i), p)
		}
	}
}

// part reports what is wrong with an invalid part.
func (v *validator) part(path string, p Part) {
	if isNilPart(p) {
		v.bad(path, "the part is nil")
		return
	}
	switch p := p.(type) {
	case *ToolCall:
		v.oneOf(path+"/payload", p.Payload, payloads)
	case *ToolResult:
		v.oneOf(path+"/payload", p.Payload, payloads)
		v.oneOf(path+"/outcome", p.Outcome, outcomes)
		v.parts(path+"/content", p.Content)
	case *Media:
		v.oneOf(path+"/media", p.Media, mediaKinds)
		if p.Attachment == "" {
			return
		}
		v.errs = append(v.errs, fmt.Errorf("%w: at %s: attachment %q has no content; expand it with the session that stores it", ErrAttachment, path, p.Attachment))
	}
}

// isValidPart reports whether a part is valid. It is the fast path: the path is computed only for
// invalid parts.
func isValidPart(p Part) bool {
	if isNilPart(p) {
		return false
	}
	switch p := p.(type) {
	case *Media:
		return p.Attachment == "" && slices.Contains(mediaKinds, p.Media)
	case *ToolCall:
		return slices.Contains(payloads, p.Payload)
	case *ToolResult:
		if !slices.Contains(payloads, p.Payload) || !slices.Contains(outcomes, p.Outcome) {
			return false
		}
		for _, inner := range p.Content {
			if !isValidPart(inner) {
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
