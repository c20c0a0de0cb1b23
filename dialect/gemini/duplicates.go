package gemini

import (
	"bytes"
	"strconv"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The fields that decide what runs, and whether it may.
var (
	responseFields  = []string{"candidates", "error", "promptFeedback", "usageMetadata", "modelVersion", "responseId"}
	candidateFields = []string{"content", "finishReason", "index"}
	contentFields   = []string{"parts", "role"}
	partFields      = []string{
		"text", "functionCall", "functionResponse", "inlineData", "fileData", "thought", "thoughtSignature",
		"executableCode", "codeExecutionResult", "toolCall", "toolResponse",
	}
	streamCallFields = []string{"id", "name", "args", "partialArgs", "willContinue"}
)

// seenFields finds fields of one object that two readers could read differently: a
// field that occurs twice, in either spelling, or in another letter case, which
// many readers ignore. The zero value is ready for one object.
type seenFields struct{ seen uint64 }

// duplicate records the next key, in camel case. It reports whether the key repeats
// a known field or is another letter case of one.
func (m *seenFields) duplicate(known []string, key []byte) bool {
	for i, name := range known {
		if string(key) == name {
			again := m.seen&(1<<i) != 0
			m.seen |= 1 << i
			return again
		}
	}
	for _, name := range known {
		if bytes.EqualFold(key, []byte(name)) {
			return true
		}
	}
	return false
}

// enumName reads an enum value. Servers can be asked to write enums as numbers;
// enumName then returns the digits.
func enumName(r *jsonwire.Reader) string {
	switch r.Kind() {
	case '"':
		return r.String()
	case '0':
		return string(r.Raw())
	default:
		r.Skip()
		return ""
	}
}

// writeEnum writes an enum value: as a number if it consists of digits,
// otherwise as a string. Digits with a leading zero are not a JSON number, so
// they are written as a string.
func writeEnum(w *jsonwire.Writer, key, value string) {
	if n, err := strconv.ParseUint(value, 10, 31); err == nil && strconv.FormatUint(n, 10) == value {
		w.RawField(key, []byte(value))
		return
	}
	w.StringField(key, value)
}
