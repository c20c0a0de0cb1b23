// Package doccheck finds the ids that code and documents cite, so that a test can check that
// each has a line in docs/quirks.md or docs/requirements.md.
//
// A citation is the word quirk or requirement followed by one or more ids, or a test name
// that starts with Test or TestQuirk followed by an id. Decisions, which docs/decisions.md
// lists, are cited by number.
package doccheck

import (
	"regexp"
	"strings"
	"unicode"
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

	quirk       = regexp.MustCompile(`\b[Qq]uirks?` + gap + ids)
	requirement = regexp.MustCompile(`\b[Rr]equirements?` + gap + ids)
	quirkTest   = regexp.MustCompile(`\bTestQuirk([A-Z]\d+)`)
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

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links returns the targets of the links to files in a Markdown text, without
// fragments.
func Links(markdown string) []string {
	var list []string
	for _, m := range link.FindAllStringSubmatch(markdown, -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target != "" && !strings.Contains(target, "://") {
			list = append(list, target)
		}
	}
	return list
}

// Fragments returns the links with a fragment, such as "page.md#keys", or "#keys" for the
// page itself.
func Fragments(markdown string) []string {
	var list []string
	for _, m := range link.FindAllStringSubmatch(markdown, -1) {
		if strings.Contains(m[1], "#") && !strings.Contains(m[1], "://") {
			list = append(list, m[1])
		}
	}
	return list
}

var heading = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)

// Anchors returns the fragments of the headings of a Markdown text, as code hosts make them.
func Anchors(markdown string) []string {
	var list []string
	for _, m := range heading.FindAllStringSubmatch(markdown, -1) {
		text := link.ReplaceAllString(strings.TrimSpace(m[1]), "]")
		list = append(list, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, text))
	}
	return list
}
