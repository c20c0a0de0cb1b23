package words

import "strings"

// Unfenced is a text without the lines that package tool puts around what it does
// not trust: one that names a boundary, "<<< boundary" and ">>> boundary". A text
// without them is returned as it is.
func Unfenced(text string) string {
	head, rest, opened := strings.Cut(text, "\n<<< ")
	boundary, inner, ok := strings.Cut(rest, "\n")
	body, closed := strings.CutSuffix(inner, "\n>>> "+boundary)
	if !opened || !ok || !closed || boundary == "" || !strings.Contains(head, boundary) {
		return text
	}
	return body
}
