package toolwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// CallReader reads one call object. It blocks a call that readers could understand
// differently: one with a duplicate field, with a field that differs from a known one
// only in case (many readers ignore case), with a second payload, or with a field of
// the wrong type.
type CallReader struct {
	Reader  *jsonwire.Reader
	Call    *dragoman.ToolCall
	Dialect dragoman.Dialect
}

// Ambiguous marks a call with a duplicate field. This problem takes precedence over
// others, such as one of the two values being unreadable; of several duplicate fields,
// the first one is reported.
func (cr *CallReader) Ambiguous(field string) {
	if p := cr.Call.Problem; p == nil || p.Code != codes.ProblemDuplicateKey {
		cr.Call.Problem = &dragoman.CallProblem{
			Code:    codes.ProblemDuplicateKey,
			Message: fmt.Sprintf("the call has a duplicate field %.40q, so its meaning is ambiguous", field),
			Offset:  -1,
		}
	}
}

// Field returns the known field that a key names, or "". seen records the fields of the
// object so far.
func (cr *CallReader) Field(known []string, seen *uint, prefix string, key []byte) string {
	for i, name := range known {
		if string(key) == name {
			if *seen&(1<<i) != 0 {
				cr.Ambiguous(name)
				forget(&cr.Call.Extra, prefix+"/"+name) // the last value counts
			}
			*seen |= 1 << i
			return name
		}
	}
	if twin := FoldsTo(known, string(key)); twin != "" {
		cr.Ambiguous(twin)
	}
	return ""
}

// FoldsTo returns the field that name equals if case is ignored, or "".
func FoldsTo(known []string, name string) string {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return k
		}
	}
	return ""
}

// forget removes the field that is stored at path.
func forget(e **dragoman.Extra, path string) {
	if *e == nil {
		return
	}
	(*e).Fields = slices.DeleteFunc((*e).Fields, func(f dragoman.Field) bool { return f.Path == path })
	if len((*e).Fields) == 0 {
		*e = nil
	}
}

// Unreadable stores a field of the wrong type and marks the call.
func (cr *CallReader) Unreadable(prefix, name, want string) {
	raw := cr.Reader.Raw()
	if cr.Reader.Err() != nil {
		return
	}
	extra.Add(&cr.Call.Extra, cr.Dialect, prefix, []byte(name), raw)
	if cr.Call.Problem == nil {
		cr.Call.Problem = &dragoman.CallProblem{
			Code: codes.ProblemUnreadable, Offset: -1,
			Message: fmt.Sprintf("the call cannot be read: %s must be %s", strings.TrimPrefix(prefix+"/"+name, "/"), want),
		}
	}
}

// Text reads a string.
func (cr *CallReader) Text(prefix, name string) string {
	switch cr.Reader.Kind() {
	case '"', 'n', 0:
		return cr.Reader.String()
	default:
		cr.Unreadable(prefix, name, "a string")
		return ""
	}
}

// Object reports whether an object follows; it skips null.
func (cr *CallReader) Object(prefix, name string) bool {
	switch cr.Reader.Kind() {
	case '{':
		return true
	case 'n', 0:
		cr.Reader.Skip()
	default:
		cr.Unreadable(prefix, name, "an object")
	}
	return false
}

// Other stores an unknown field.
func (cr *CallReader) Other(prefix string, key []byte) {
	extra.Add(&cr.Call.Extra, cr.Dialect, prefix, key, cr.Reader.Raw())
}

// Payload reads the object that holds a call's name and payload. It returns false if
// all fields of the object are empty: Snowflake Cortex writes such an object in
// addition to the real one, and it counts as absent.
func (cr *CallReader) Payload(prefix string, known []string, payload string) (filled bool) {
	var seen uint
	for key := range cr.Reader.Object() {
		switch cr.Field(known, &seen, prefix, key) {
		case "name":
			if skipEmpty(cr.Reader) {
				continue
			}
			filled = true
			cr.Call.Name = cr.Text(prefix, "name")
		case payload:
			if skipEmpty(cr.Reader) {
				continue
			}
			filled = true
			cr.Call.Arguments = ReadPayload(cr.Reader)
		default:
			filled = true
			cr.Other(prefix, key)
		}
	}
	return filled
}

// skipEmpty skips null and "", and reports whether it did.
func skipEmpty(rd *jsonwire.Reader) bool {
	switch rd.Kind() {
	case 'n':
	case '"':
		if !bytes.HasPrefix(rd.Rest(), []byte(`""`)) {
			return false
		}
	default:
		return false
	}
	rd.Skip()
	return true
}

// ReadPayload reads arguments in either form that servers use: a string, or the JSON
// value itself (quirks B1, B4).
func ReadPayload(rd *jsonwire.Reader) string {
	switch rd.Kind() {
	case '"':
		return rd.String()
	case 'n':
		rd.Skip()
		return ""
	default:
		return string(rd.Raw())
	}
}

// ReadID reads a call id. Ids are strings. A number is not an id; the decoder makes an
// id instead (requirement I8).
func ReadID(rd *jsonwire.Reader) string {
	if rd.Kind() == '"' {
		return rd.String()
	}
	rd.Skip()
	return ""
}

// WriteUnlessKept writes a field of a call, unless an unreadable value of the field was
// stored: that one is written back unchanged.
func WriteUnlessKept(w *jsonwire.Writer, e *dragoman.Extra, d dragoman.Dialect, prefix, key, value string) {
	if e == nil || !HasField(e, d, prefix+"/"+key) {
		w.StringField(key, value)
	}
}

// WithOuter returns the shape of a call that may have been stored without its outer
// object, which holds it in field.
func WithOuter(c Recognizer, field string, obj json.RawMessage) CallShape {
	if o := OutlineOf(obj); o != nil && c.RecognizeInner(o) != "" {
		return CallShape{Object: slices.Concat([]byte(`{"`+field+`":`), obj, []byte("}")), Inner: true}
	}
	return CallShape{Object: obj}
}
