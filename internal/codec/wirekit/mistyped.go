package wirekit

import (
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// errNoText says what is wrong with a text that is none.
var errNoText = errors.New("want a string")

// Mistyped is the error, placed in raw, of a message or an item of a request with
// a text that is no string; nil for one without. Such a part is kept as it is
// where a provider says it. A client that says it made a mistake, and nobody else
// could be told what it said.
func Mistyped(raw []byte, parts []dragoman.Part) error {
	if !holdsMistyped(parts) {
		return nil
	}
	r := jsonwire.NewReader(raw)
	readMistyped(r)
	return r.Err()
}

// holdsMistyped reports whether a text was not read as one.
func holdsMistyped(parts []dragoman.Part) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Opaque:
			if textMember(p.Type) != "" {
				return true
			}
		case *dragoman.ToolResult:
			if holdsMistyped(p.Content) {
				return true
			}
		}
	}
	return false
}

// textMember is the member of a part of type typ that holds its text.
func textMember(typ string) string {
	switch typ {
	case "text", "input_text", "output_text":
		return "text"
	case "refusal":
		return "refusal"
	default:
		return ""
	}
}

// readMistyped reads an object and the parts in it up to the first text that is
// no string, where the reader fails.
func readMistyped(r *jsonwire.Reader) {
	for key := range r.Object() {
		if k := string(key); k != "content" && k != "output" || r.Kind() != '[' {
			r.Skip()
			continue
		}
		for range r.Array() {
			if r.Kind() == '{' {
				readPart(r)
			} else {
				r.Skip()
			}
		}
	}
}

func readPart(r *jsonwire.Reader) {
	raw := r.Raw()
	if r.Err() != nil {
		return
	}
	start := r.Offset() - int64(len(raw))
	typ, in := "", jsonwire.NewReader(raw)
	for key := range in.Object() {
		if string(key) == "type" && in.Kind() == '"' {
			typ = in.String()
		} else {
			in.Skip()
		}
	}
	in = jsonwire.NewReader(raw)
	if member := textMember(typ); member != "" {
		for key := range in.Object() {
			wrong := string(key) == member && in.Kind() != '"'
			if in.Skip(); wrong {
				in.Fail(errNoText)
			}
		}
	} else {
		readMistyped(in)
	}
	var at *jsonwire.Error
	if errors.As(in.Err(), &at) {
		r.FailBelow(at, start)
	}
}

// NoStrings is the error, placed in raw, of an object in which one of the members
// is neither a string nor null; nil for one in which each is.
func NoStrings(raw []byte, members ...string) error {
	r := jsonwire.NewReader(raw)
	for key := range r.Object() {
		wrong := false
		for _, m := range members {
			wrong = wrong || string(key) == m && r.Kind() != '"' && r.Kind() != 'n'
		}
		if r.Skip(); wrong {
			r.Fail(errNoText)
		}
	}
	return r.Err()
}
