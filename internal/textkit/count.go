package textkit

import (
	"strconv"
	"strings"
)

// Count returns a number and its noun, plural unless the number is 1: "1 byte", "2 bytes",
// "3 entries".
func Count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun = plural(noun)
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun
}

// plural returns the regular plural of a noun.
func plural(noun string) string {
	stem, y := strings.CutSuffix(noun, "y")
	if y && stem != "" && !strings.ContainsRune("aeiou", rune(stem[len(stem)-1])) {
		return stem + "ies"
	}
	return noun + "s"
}
