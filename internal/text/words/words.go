// Package words tells texts and names apart into words, for who looks for one in the
// other.
package words

import (
	"strings"
	"unicode"
)

// Split splits text, and names in any of the usual spellings, into words in small
// letters: "get_weather", "getWeather" and "get weather" are the same two.
func Split(text string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	var last rune
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
		case unicode.IsUpper(r) && unicode.IsLower(last):
			flush()
			word = append(word, r)
		default:
			word = append(word, r)
		}
		last = r
	}
	flush()
	return words
}
