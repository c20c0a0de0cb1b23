package textkit

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckName returns an error if s cannot be a name: it has a control or format character,
// such as a newline, a text direction mark or a zero-width space, or is not UTF-8.
func CheckName(s string) error {
	return checkChars(s, func(r rune) bool {
		return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
	})
}

// CheckDescription returns an error if s cannot be a description: it has a control character
// other than tab and line ends, overrides the text direction, has invisible tag
// characters, or is not UTF-8. Joiners and direction marks, which some scripts need,
// are allowed.
func CheckDescription(s string) error {
	return checkChars(s, func(r rune) bool {
		switch {
		case r == '\t', r == '\n', r == '\r':
			return false
		case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069: // embeddings, overrides, isolates
			return true
		case r >= 0xE0000 && r <= 0xE007F: // tag characters, which can encode hidden text
			return true
		default:
			return unicode.Is(unicode.Cc, r)
		}
	})
}

func checkChars(s string, bad func(rune) bool) error {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return fmt.Errorf("invalid UTF-8 at byte %d", i)
			}
		}
		if bad(r) {
			return fmt.Errorf("control or invisible character %U at byte %d; remove it", r, i)
		}
	}
	return nil
}

const maxToken = 200

// Token returns a name as a single word: letters, digits and _ . : / - stay, everything
// else becomes _. It is at most 200 bytes long.
func Token(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.:/-", r) {
			r = '_'
		}
		if b.Len()+utf8.RuneLen(r) > maxToken {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}
