package gemini

import (
	"bytes"
	"strconv"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The members that say what runs, and whether it may.
var (
	responseMembers  = []string{"candidates", "error", "promptFeedback", "usageMetadata", "modelVersion", "responseId"}
	candidateMembers = []string{"content", "finishReason", "index"}
	contentMembers   = []string{"parts", "role"}
	partMembers      = []string{
		"text", "functionCall", "functionResponse", "inlineData", "fileData", "thought", "thoughtSignature",
		"executableCode", "codeExecutionResult", "toolCall", "toolResponse",
	}
	callMembers = []string{"id", "name", "args", "partialArgs", "willContinue"}
)

// members finds what two readers of one object could read as two: a member that
// stands twice, in either spelling, or in letters of another case, as many
// readers ignore it. The zero value is ready for one object.
type members struct{ seen uint64 }

// twice takes the next key, in camel case, and reports whether it says one of
// the known members again or another way.
func (m *members) twice(known []string, key []byte) bool {
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

// word reads the name of an enum's value. Servers that are asked to write
// numbers for them get the number's text.
func word(r *jsonwire.Reader) string {
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

// writeWord writes the value of an enum: the number of a value as a number, a name as a
// string. Digits with a leading zero are not JSON, so they are a string.
func writeWord(w *jsonwire.Writer, key, value string) {
	if n, err := strconv.ParseUint(value, 10, 31); err == nil && strconv.FormatUint(n, 10) == value {
		w.RawField(key, []byte(value))
		return
	}
	w.StringField(key, value)
}
