package interop

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// RecognizeCall returns the format of a call object by its shape, or "" if no format matches.
// It tries, in this order:
//
//   - contributed accessors with the method Recognizes, in order of precedence
//   - the built-in formats; a part that holds a call ("functionCall") counts as the call
//   - the other contributed accessors: the first that reads a call with a name
//   - the inner objects of calls ("function" and "toolUse")
func (r *Registry) RecognizeCall(obj json.RawMessage) dragoman.Format {
	if jsonwire.Check(obj) != nil {
		return ""
	}
	var others []callGuard
	for _, e := range r.listing {
		if e.What != "call" || e.Shadowed != "" {
			continue
		}
		a := r.calls[e.From]
		yes, known := a.recognizes(obj)
		switch {
		case !known:
			others = append(others, a)
		case yes:
			return e.From
		}
	}
	outline := toolwire.OutlineOf(obj)
	if f := r.recognize(outline, toolwire.Recognizer.RecognizeCall); f != "" {
		return f
	}
	for _, a := range others {
		if c, _, err := a.InspectCall(obj); err == nil && c != nil && c.Name != "" {
			return a.Format()
		}
	}
	return r.recognize(outline, toolwire.Recognizer.RecognizeInner)
}

// recognize returns the format that the first codec recognizes.
func (r *Registry) recognize(o *toolwire.Outline, by func(toolwire.Recognizer, *toolwire.Outline) dragoman.Format) dragoman.Format {
	if o == nil {
		return ""
	}
	for _, c := range r.codecs {
		if rec, ok := c.(toolwire.Recognizer); ok {
			if f := by(rec, o); f != "" {
				return f
			}
		}
	}
	return ""
}

// sanitizeContributed makes a call of a contributed format safe for a history.
func (r *Registry) sanitizeContributed(a callGuard, out *dragoman.Native, rep *dragoman.Report) {
	c, _, err := a.InspectCall(out.JSON)
	if err != nil || c == nil || c.Payload == codes.PayloadText {
		return
	}
	why := "the arguments are blank"
	if strings.TrimSpace(c.Arguments) != "" {
		p := dragoman.CheckArguments(c.Arguments)
		if p == nil || p.Code != codes.ProblemInvalidJSON {
			return
		}
		why = p.Message
	}
	w, ok := r.adapters[adapterKey{codes.CallObject, "", a.Format()}]
	if !ok {
		rep.Addf(dragoman.Lowered, dragoman.Warn, "", "arguments kept, although %s: no call adapter for the format %s; contribute one", why, a.Format())
		return
	}
	clean := *c
	clean.Arguments, clean.Problem = "{}", nil
	raw, _, err := w.Adapt(dragoman.AdapterInput{Call: &clean})
	if err != nil {
		rep.Addf(dragoman.Lowered, dragoman.Warn, "", "arguments kept, although %s: %v", why, err)
		return
	}
	rep.Addf(dragoman.Lowered, dragoman.Warn, "/arguments", "arguments written as {}: %s", why)
	out.JSON = raw
}

// ReadsSchema reports whether the registry can read tool definitions of a format, contributed
// or built-in.
func (r *Registry) ReadsSchema(f dragoman.Format) bool {
	if _, ok := r.schemas[f]; ok {
		return true
	}
	return r.readsBuiltIn(f)
}

// onlySource reports whether only the source of a tool is known: its name and the schema of its
// arguments have not been read from it.
func onlySource(s *dragoman.ToolSpec) bool {
	if s.Source == nil || s.Kind == codes.ToolHosted {
		return false
	}
	return s.Name == "" || s.Kind == codes.ToolFunction && len(s.Parameters) == 0 && s.Source.Mirror == dragoman.Fingerprint{}
}
