package wirekit

import (
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// errNoText reports a text field that is not a string.
var errNoText = errors.New("want a string")

// Mistyped returns the error for a text in a message or an item of a request that is
// not a string, with its position in raw. It returns nil if all texts are strings. Such
// a part from a provider is kept as opaque. From a client it is a mistake, and no other
// target could receive the part.
func Mistyped(raw []byte, parts []dragoman.Part) error {
	if !holdsMistyped(parts) {
		return nil
	}
	r := jsonwire.NewReader(raw)
	readMistyped(r)
	return r.Err()
}

// holdsMistyped reports whether a text part was decoded as opaque.
func holdsMistyped(parts []dragoman.Part) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Opaque:
			if textField(p.Type) != "" {
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

// textField returns the field that holds the text of a part of type typ, or "".
func textField(typ string) string {
	switch typ {
	case "text", "input_text", "output_text":
		return "text"
	case "refusal":
		return "refusal"
	default:
		return ""
	}
}

// readMistyped reads an object and its parts up to the first text that is not a string,
// where the reader fails.
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
	if field := textField(typ); field != "" {
		for key := range in.Object() {
			wrong := string(key) == field && in.Kind() != '"'
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

// CheckNotStrings returns an error, with its position in raw, if one of the given fields
// is neither a string nor null.
func CheckNotStrings(raw []byte, fields ...string) error {
	r := jsonwire.NewReader(raw)
	for key := range r.Object() {
		wrong := false
		for _, m := range fields {
			wrong = wrong || string(key) == m && r.Kind() != '"' && r.Kind() != 'n'
		}
		if r.Skip(); wrong {
			r.Fail(errNoText)
		}
	}
	return r.Err()
}
