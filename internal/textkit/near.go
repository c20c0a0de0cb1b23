package textkit

import (
	"slices"
	"strings"
)

// maxCompared is the maximum number of bytes of a name that are compared.
const maxCompared = 64

// maxNamed is the maximum length of a name that is compared.
const maxNamed = 2 * maxCompared

// Distance returns the number of byte changes that turn a into b. Swapping two neighbors
// counts as one change.
func Distance(a, b string) int {
	a, b = a[:min(len(a), maxCompared)], b[:min(len(b), maxCompared)]
	row, before, older := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		copy(older, before)
		copy(before, row)
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// Near returns the name that is most similar to a misspelled one, or a name that ends
// with a slash and the misspelled one. It returns the first of several, and "" if no
// name is similar. Very long names are never similar.
func Near(wrote string, names []string) string {
	best, least := "", 0
	if len(wrote) > maxNamed {
		return ""
	}
	for _, name := range names {
		if len(name) > maxNamed {
			continue
		}
		if wrote != "" && strings.HasSuffix(name, "/"+wrote) {
			return name
		}
		far := Distance(strings.ToLower(wrote), strings.ToLower(name))
		if far <= max(len(wrote), len(name))/3 && (best == "" || far < least) {
			best, least = name, far
		}
	}
	return best
}

// Suggest returns a suggestion for a misspelled name, to append to a message, or "" if no
// name is similar.
func Suggest(wrote string, names []string) string {
	if slices.Contains(names, wrote) {
		return ""
	}
	if near := Near(wrote, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
