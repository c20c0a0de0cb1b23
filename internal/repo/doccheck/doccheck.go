// Package doccheck finds the ids that code and documents cite, so that a test can check that
// each has a line in docs/quirks.md or docs/requirements.md.
//
// A citation is the word quirk, pitfall or requirement followed by one or more ids, or a test name
// that starts with Test, TestQuirk or TestPitfall followed by an id. Decisions, which docs/decisions.md
// lists, are cited by number.
package doccheck

import (
	"regexp"
	"strings"
)

// Citation is one id cited at one place.
type Citation struct {
	// Quirk reports whether the id is in docs/quirks.md; otherwise it is in docs/requirements.md.
	Quirk bool
	ID    string
	Line  int
}

var (
	// Comment markers and line ends between a word and its ids.
	gap = `(?:[ \t]|\n[ \t]*(?://|#|>)?[ \t]*)+`
	ids = `([A-Z]\d+\b(?:(?:,|[–-]|` + gap + `(?:and|to|or)\b|` + gap + `)*\b[A-Z]?\d+\b)*)`

	quirk       = regexp.MustCompile(`\b(?:[Qq]uirk|[Pp]itfall)s?` + gap + ids)
	requirement = regexp.MustCompile(`\b[Rr]equirements?` + gap + ids)
	quirkTest   = regexp.MustCompile(`\bTest(?:Quirk|Pitfall)([A-Z]\d+)`)
	reqTest     = regexp.MustCompile(`\bTest([RXTIPALSMOGCZD]\d+)_`)
	id          = regexp.MustCompile(`[A-Z]\d+`)
)

// Citations returns every citation in a text.
func Citations(text string) []Citation {
	var found []Citation
	for _, p := range []struct {
		re    *regexp.Regexp
		quirk bool
	}{{quirk, true}, {quirkTest, true}, {requirement, false}, {reqTest, false}} {
		for _, m := range p.re.FindAllStringSubmatchIndex(text, -1) {
			for _, span := range id.FindAllStringIndex(text[m[2]:m[3]], -1) {
				at := m[2] + span[0]
				found = append(found, Citation{
					Quirk: p.quirk,
					ID:    text[at : m[2]+span[1]],
					Line:  1 + strings.Count(text[:at], "\n"),
				})
			}
		}
	}
	return found
}

var entry = regexp.MustCompile(`(?m)^- ([A-Z]\d+): (.+)$`)

// Entries returns the ids that have a line in a document, in order.
func Entries(doc string) []string {
	var list []string
	for _, m := range entry.FindAllStringSubmatch(doc, -1) {
		list = append(list, m[1])
	}
	return list
}

var entryStart = regexp.MustCompile(`(?m)^(?:- ([A-Z]\d+): |[-#])`)

// EntryTexts returns the whole text of each entry, which may have several lines.
func EntryTexts(doc string) map[string]string {
	texts := map[string]string{}
	starts := entryStart.FindAllStringSubmatchIndex(doc, -1)
	for i, m := range starts {
		if m[2] < 0 {
			continue // a heading, or another list
		}
		end := len(doc)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		texts[doc[m[2]:m[3]]] = strings.TrimSpace(doc[m[1]:end])
	}
	return texts
}

var (
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence = regexp.MustCompile("(?ms)^```.*?^```$")
)

// Links returns the targets of the links to files in a Markdown text, without
// fragments. Code blocks have no links.
func Links(markdown string) []string {
	var list []string
	for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(markdown, ""), -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target != "" && !strings.Contains(target, "://") {
			list = append(list, target)
		}
	}
	return list
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Anchors returns the fragments that links to the headings of a Markdown text have.
func Anchors(markdown string) []string {
	var list []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(markdown, ""), -1) {
		text := dropped.ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(text, " ", "-"))
	}
	return list
}

// Fragments returns the targets of the links to headings in a Markdown text: a file, empty for
// the same one, and a fragment.
func Fragments(markdown string) (list [][2]string) {
	for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(markdown, ""), -1) {
		file, fragment, _ := strings.Cut(m[1], "#")
		if fragment != "" && !strings.Contains(file, "://") {
			list = append(list, [2]string{file, fragment})
		}
	}
	return list
}
