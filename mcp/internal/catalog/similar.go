package catalog

import "strings"

// lookalikes maps letters of other scripts to the ASCII letters that they resemble.
var lookalikes = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ј': 'j', 'ѕ': 's', 'ԁ': 'd', 'ԛ': 'q', 'ԝ': 'w', 'һ': 'h', 'ӏ': 'l', 'ь': 'b', 'в': 'b', 'к': 'k', 'м': 'm', 'н': 'h', 'т': 't', 'г': 'r', 'п': 'n',
	'А': 'a', 'В': 'b', 'Е': 'e', 'К': 'k', 'М': 'm', 'Н': 'h', 'О': 'o', 'Р': 'p', 'С': 'c', 'Т': 't', 'Х': 'x', 'У': 'y', 'І': 'i', 'Ј': 'j', 'Ѕ': 's',
	'α': 'a', 'β': 'b', 'ε': 'e', 'ι': 'i', 'κ': 'k', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x', 'γ': 'y', 'ω': 'w', 'η': 'n', 'μ': 'u',
	'Α': 'a', 'Β': 'b', 'Ε': 'e', 'Ζ': 'z', 'Η': 'h', 'Ι': 'i', 'Κ': 'k', 'Μ': 'm', 'Ν': 'n', 'Ο': 'o', 'Ρ': 'p', 'Τ': 't', 'Υ': 'y', 'Χ': 'x',
	'ı': 'i', 'ɑ': 'a', 'ɡ': 'g', 'ɩ': 'i', 'ո': 'n', 'օ': 'o', 'ս': 'u', 'հ': 'h', 'ց': 'g', 'ｅ': 'e',
	'á': 'a', 'à': 'a', 'ä': 'a', 'â': 'a', 'ã': 'a', 'å': 'a', 'é': 'e', 'è': 'e', 'ê': 'e', 'ë': 'e', 'í': 'i', 'ì': 'i', 'î': 'i', 'ï': 'i', 'ó': 'o', 'ò': 'o', 'ô': 'o', 'ö': 'o', 'ú': 'u', 'ù': 'u', 'û': 'u', 'ü': 'u', 'ç': 'c', 'ñ': 'n',
}

// ranges of letters and digits that resemble ASCII in another style.
const (
	fullwidthFirst, fullwidthLast = 0xFF01, 0xFF5E
	styledFirst, styledLast       = 0x1D400, 0x1D6A3 // mathematical letters
	styledDigits, styledDigitsEnd = 0x1D7CE, 0x1D7FF
	alphabet                      = 26
)

// asciiLike returns the ASCII character that r resembles, or r.
func asciiLike(r rune) rune {
	switch {
	case r < 0x80:
		return r
	case r >= fullwidthFirst && r <= fullwidthLast:
		return r - fullwidthFirst + '!'
	case r >= styledFirst && r <= styledLast:
		return 'a' + (r-styledFirst)%alphabet
	case r >= styledDigits && r <= styledDigitsEnd:
		return '0' + (r-styledDigits)%10
	}
	if like, ok := lookalikes[r]; ok {
		return like
	}
	return r
}

// skeleton returns the form that names which look alike share: without case, separators and
// hidden characters, and with similar letters and digits as one.
func skeleton(name string) string {
	var b strings.Builder
	for _, r := range removeHidden(name) {
		r = asciiLike(r)
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		switch r {
		case '_', '-', '.', ' ', '/', ':':
			continue
		case '0':
			r = 'o'
		case '1', 'i', '|':
			r = 'l'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// hasLookalikes reports whether a name has characters that imitate ASCII.
func hasLookalikes(name string) bool {
	for _, r := range name {
		if asciiLike(r) != r {
			return true
		}
	}
	return false
}
