package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// hiddenAt returns why the character at s[i:] is hidden from readers, and its length. The
// reason is empty if it is visible, or has a legitimate use in its place: joiners in emoji and
// in scripts that need them, direction marks next to right-to-left letters, and the flags of
// England, Scotland and Wales.
func hiddenAt(s string, i int) (reason string, size int) {
	r, size := utf8.DecodeRuneInString(s[i:])
	switch {
	case r == '\t', r == '\n', r == '\r':
		return "", size
	case r == utf8.RuneError && size == 1:
		return "a byte that is not UTF-8", size
	case r < 0x20, r >= 0x7F && r <= 0x9F:
		return "a control character", size
	case r < 0xAD:
		return "", size
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		return "a character that changes the text direction", size
	case r >= 0xE0000 && r <= 0xE007F:
		if n := flagTags(s, i); n > 0 {
			return "", n
		}
		return "an invisible tag character, which can encode hidden text", size
	case r == 0x200C || r == 0x200D:
		if joins(s, i, size) {
			return "", size
		}
		return "a zero-width joiner", size
	case r == 0x200E || r == 0x200F || r == 0x061C:
		if nearRightToLeft(s, i, size) {
			return "", size
		}
		return "a direction mark", size
	case r == 0xAD, r == 0x34F, r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0, r == 0x180E,
		r == 0x200B, r >= 0x2060 && r <= 0x2065, r >= 0x206A && r <= 0x206F, r == 0xFEFF, r >= 0xFFF9 && r <= 0xFFFB, r >= 0x1D173 && r <= 0x1D17A:
		return "a character without width", size
	case r >= 0xFE00 && r <= 0xFE0F:
		if p, _ := utf8.DecodeLastRuneInString(s[:i]); unicode.IsSymbol(p) || p == '#' || p == '*' || unicode.IsDigit(p) || unicode.Is(unicode.Han, p) || unicode.IsPunct(p) || unicode.IsNumber(p) {
			return "", size
		}
		return "a variation selector without a character to vary", size
	case r >= 0xE0100 && r <= 0xE01EF:
		if p, _ := utf8.DecodeLastRuneInString(s[:i]); unicode.Is(unicode.Han, p) {
			return "", size
		}
		return "a variation selector, which can encode hidden text", size
	case r == 0x2028, r == 0x2029:
		return "a hidden line end", size
	case unicode.Is(unicode.Co, r):
		return "a private character, whose meaning only a font knows", size
	case unicode.Is(unicode.Cf, r) && !unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Kaithi):
		return "a format character", size
	}
	return "", size
}

// joins reports whether a joiner connects emoji or letters of a script that needs joiners.
func joins(s string, i, size int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+size:])
	emoji := func(r rune) bool {
		return unicode.Is(unicode.So, r) || r == 0xFE0F || r >= 0x1F3FB && r <= 0x1F3FF || r == 0x2640 || r == 0x2642
	}
	script := func(r rune) bool {
		return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati,
			unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar)
	}
	return emoji(before) && emoji(after) || script(before) && (script(after) || unicode.IsSpace(after) || unicode.IsPunct(after) || i+size == len(s))
}

// nearRightToLeft reports whether a letter of a right-to-left script is close.
func nearRightToLeft(s string, i, size int) bool {
	const reach = 16
	for _, r := range s[max(0, i-reach):i] + s[i+size:min(len(s), i+size+reach)] {
		if unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko) {
			return true
		}
	}
	return false
}

// flagTags returns the length of the tags of a subdivision flag at s[i:], such as that of
// Scotland, or 0.
func flagTags(s string, i int) int {
	if !strings.HasSuffix(s[:i], "\U0001F3F4") {
		return 0
	}
	for _, code := range [...]string{"gbeng", "gbsct", "gbwls"} {
		var b strings.Builder
		for _, c := range code {
			b.WriteRune(0xE0000 + c)
		}
		b.WriteRune(0xE007F)
		if strings.HasPrefix(s[i:], b.String()) {
			return b.Len()
		}
	}
	return 0
}

// removeHidden returns s without hidden characters.
func removeHidden(s string) string {
	if isPlainASCII(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		reason, n := hiddenAt(s, i)
		if reason == "" {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// isPlainASCII reports whether s has printable ASCII, tabs and line ends only.
func isPlainASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7F || c < 0x20 && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}
