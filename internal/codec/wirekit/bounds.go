package wirekit

import (
	"bytes"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/framing"
)

// CheckSize refuses a body that exceeds the limits: too many bytes, or so many values
// that its canonical form would be a hundred times as large as the body.
func CheckSize(d dragoman.Dialect, what string, body []byte, o dialect.DecodeOptions) error {
	if len(body) > o.Limit() {
		return DecodeError(d, what, fmt.Errorf("%w: %d bytes, the limit is %d", dragoman.ErrTooLarge, len(body), o.Limit()))
	}
	return DecodeError(d, what, CheckValues(body))
}

// CheckValues refuses a document, either a body or the data of one event, that has too
// many values.
func CheckValues(doc []byte) error {
	// Strings hold commas too, but only a very long document needs a closer look.
	if len(doc) > framing.MaxValues && bytes.Count(doc, []byte{','}) >= framing.MaxValues && separators(doc) >= framing.MaxValues {
		return fmt.Errorf("%w: more than %d values", dragoman.ErrTooLarge, framing.MaxValues)
	}
	return nil
}

// separators counts the commas outside of strings.
func separators(doc []byte) int {
	n, quoted := 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ',' && !quoted:
			n++
		}
	}
	return n
}
