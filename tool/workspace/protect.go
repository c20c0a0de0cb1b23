package workspace

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"
)

// protection holds names that must not be written.
type protection struct {
	// names are the given names, and folded their folded forms.
	names, folded []string
}

func newProtection(names []string) (protection, error) {
	p := protection{names: names, folded: make([]string, len(names))}
	for i, name := range names {
		p.folded[i] = foldName(name)
		if p.folded[i] == "" || strings.ContainsAny(name, `/\`) {
			return p, fmt.Errorf("%w: %q cannot be protected: it must be the name of a file or folder, without a path", ErrOptions, name)
		}
	}
	return p, nil
}

// protectedElement returns the element of a path that may not be written to, or "".
func (p protection) protectedElement(rel string) string {
	for element := range strings.SplitSeq(rel, "/") {
		if p.covers(element) {
			return element
		}
	}
	return ""
}

// covers reports whether some file system may treat a name as a protected one.
func (p protection) covers(name string) bool {
	name = foldName(name)
	for _, f := range p.folded {
		if name == f {
			return true
		}
		// The short name that Windows gives to a name with a leading dot.
		short, isShort := strings.CutPrefix(name, strings.TrimPrefix(f, ".")+"~")
		if _, err := strconv.Atoi(short); isShort && err == nil {
			return true
		}
	}
	return false
}

// sameAs returns the protected name that is the same file as another name in a directory, or
// "". It asks the file system itself, whatever its rules are; this works only if the protected
// file exists.
func (p protection) sameAs(dir *os.Root, name string) string {
	info, err := dir.Lstat(name)
	if err != nil {
		return ""
	}
	for _, n := range p.names {
		if other, err := dir.Lstat(n); err == nil && os.SameFile(info, other) {
			return n
		}
	}
	return ""
}

// foldName maps all names that some file system treats as the same file to one name: it folds
// case by all Unicode mappings (.ſvn is .svn), drops invisible characters (macOS, ext4),
// trailing dots and spaces, and everything after a colon (Windows). It folds too much rather
// than too little. sameAs finds accents that are written in different ways.
func foldName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			continue
		}
		if s := foldsToSeveral(r); s != "" {
			b.WriteString(s)
			continue
		}
		b.WriteRune(foldRune(r))
	}
	name, _, _ = strings.Cut(b.String(), ":")
	return strings.TrimRight(name, " .")
}

// foldRune returns the same rune for all letters that differ only in case, by any Unicode
// mapping.
func foldRune(r rune) rune {
	r = unicode.ToLower(unicode.ToUpper(unicode.ToLower(r)))
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}

// foldsToSeveral returns the full Unicode case folding of a letter that folds to several
// letters, and "" for other letters.
func foldsToSeveral(r rune) string {
	switch r {
	case 'ß', 'ẞ':
		return "SS"
	case 'ﬀ':
		return "FF"
	case 'ﬁ':
		return "FI"
	case 'ﬂ':
		return "FL"
	case 'ﬃ':
		return "FFI"
	case 'ﬄ':
		return "FFL"
	case 'ﬅ', 'ﬆ':
		return "ST"
	default:
		return ""
	}
}
