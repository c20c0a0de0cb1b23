package textkit

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
)

func TestX13_SecretSpellingsCoverBase64(t *testing.T) {
	for _, secret := range []string{"sk-Zm9v+YmFy/more==", "a?b>c~d", "\xff\xfe\xfd\xfc\xfb\xfa", "ключ от двери"} {
		spelt := SecretSpellings(secret)
		slices.SortStableFunc(spelt, func(a, b string) int { return len(b) - len(a) })
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			if whole := enc.EncodeToString([]byte(secret)); !slices.Contains(spelt, whole) {
				t.Errorf("%q: %s is missing", secret, whole)
			}
			for before := range 6 {
				for after := range 3 {
					text := enc.EncodeToString([]byte(strings.Repeat("u", before) + secret + strings.Repeat(":", after)))
					clean := text
					for _, s := range spelt {
						clean = strings.ReplaceAll(clean, s, "")
					}
					// At most one character at each end of the secret depends on other bytes too.
					if rest := strings.TrimRight(clean, "="); len(rest) > (before+after)*4/3+4 {
						t.Errorf("%q with %d bytes before and %d after: %s left of %s", secret, before, after, clean, text)
					}
				}
			}
		}
		if sorted := slices.Sorted(slices.Values(spelt)); len(slices.Compact(sorted)) != len(spelt) {
			t.Errorf("duplicates in %q", spelt)
		}
	}
}

// The characters that depend on a short secret alone occur in other base64, such as an image.
func TestSecretSpellingsOfShortSecretsAreNotPartsOfBase64(t *testing.T) {
	for _, s := range SecretSpellings("1234") {
		if len(s) < len("1234") || s == base64Inside(base64.RawStdEncoding, "1234", 1) {
			t.Errorf("%q would occur in other text", s)
		}
	}
}
