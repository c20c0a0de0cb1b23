package doccheck

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Decisions is the content of docs/decisions.md.
type Decisions struct {
	// Topics lists the sections with entries, in the order of the page.
	Topics []Topic
	// Contents maps a topic to the numbers that the table at the top of the page lists for it.
	Contents map[string][]int
	// Superseded maps a number to the one that replaced it.
	Superseded map[int]int
}

// Topic is a section with decisions.
type Topic struct {
	Name    string
	Numbers []int
}

var (
	topicHeading    = regexp.MustCompile(`^## (.+)$`)
	decisionHeading = regexp.MustCompile(`^### (\d+)\. \S`)
	contentsRow     = regexp.MustCompile(`^\| \[([^\]]+)\]\(#[^)]+\) \| ([\d, ]+) \|$`)
	supersededRow   = regexp.MustCompile(`^\| (\d+) \| .+ \| (\d+) \|$`)
)

// ReadDecisions parses docs/decisions.md.
func ReadDecisions(doc string) Decisions {
	d := Decisions{Contents: map[string][]int{}, Superseded: map[int]int{}}
	name := ""
	for line := range strings.Lines(doc) {
		line = strings.TrimSuffix(line, "\n")
		if m := topicHeading.FindStringSubmatch(line); m != nil {
			name = m[1]
		} else if m := decisionHeading.FindStringSubmatch(line); m != nil {
			if n := len(d.Topics); n == 0 || d.Topics[n-1].Name != name {
				d.Topics = append(d.Topics, Topic{Name: name})
			}
			last := &d.Topics[len(d.Topics)-1]
			last.Numbers = append(last.Numbers, number(m[1]))
		} else if m := contentsRow.FindStringSubmatch(line); m != nil {
			d.Contents[m[1]] = numbers(m[2])
		} else if m := supersededRow.FindStringSubmatch(line); m != nil {
			d.Superseded[number(m[1])] = number(m[2])
		}
	}
	return d
}

// Has reports whether a number has an entry.
func (d Decisions) Has(n int) bool {
	for _, t := range d.Topics {
		if slices.Contains(t.Numbers, n) {
			return true
		}
	}
	return false
}

// DecisionCitation is a decision cited at one place.
type DecisionCitation struct {
	Number int
	Line   int
}

var (
	decisionText = regexp.MustCompile(`\b[Dd]ecisions?` + gap + `(\d+\b(?:(?:,` + gap + `|` + gap + `(?:and|or|to)` + gap + `)\d+\b)*)`)
	decisionTest = regexp.MustCompile(`\bTest\w*?Decision(\d+)_`)
	digits       = regexp.MustCompile(`\d+`)
)

// DecisionCitations returns the decisions that a text cites: the word decision followed by
// one or more numbers, or a test name such as TestDecision85_AlteredAttachmentsAreAnError.
func DecisionCitations(text string) []DecisionCitation {
	var found []DecisionCitation
	for _, re := range []*regexp.Regexp{decisionText, decisionTest} {
		for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
			for _, span := range digits.FindAllStringIndex(text[m[2]:m[3]], -1) {
				at := m[2] + span[0]
				found = append(found, DecisionCitation{
					Number: number(text[at : m[2]+span[1]]),
					Line:   1 + strings.Count(text[:at], "\n"),
				})
			}
		}
	}
	return found
}

func numbers(list string) (out []int) {
	for _, s := range digits.FindAllString(list, -1) {
		out = append(out, number(s))
	}
	return out
}

// number converts digits that a pattern matched.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}
