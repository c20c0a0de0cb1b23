package gemini

import (
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// CapabilitiesOf returns what is known of a model by its name, which may come
// with a path before it ("models/gemini-2.5-flash", or that of Vertex). Models up
// to Gemini 2.5 differ from those since in what they take (quirks A44, B15, F1,
// G10); a name that tells nothing gets the zero value, which is the newest.
func CapabilitiesOf(model string) dragoman.Capabilities {
	if generation(model) >= 3 {
		return dragoman.Capabilities{}
	}
	return dragoman.Capabilities{
		NoMixedTools:      true,
		NoOutputWithTools: true,
		NoCallIDs:         true,
		NoResultMedia:     true,
		NoDummySignature:  true,
		ThinkingBudgets:   true,
	}
}

// generation is the first number in the name of a model of the family; one
// that has none is taken for new.
func generation(model string) int {
	const newest = 1 << 30
	base := model[strings.LastIndexByte(model, '/')+1:]
	rest, ok := strings.CutPrefix(strings.ToLower(base), "gemini-")
	if !ok {
		return newest
	}
	if rest == "pro" || strings.HasPrefix(rest, "pro-vision") { // the first had no number
		return 1
	}
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	n, err := strconv.Atoi(digits)
	if err != nil {
		return newest
	}
	return n
}
