package recorded_test

import (
	"strings"
	"testing"
)

// change is one difference between a rebuilt response and the original.
type change struct {
	line      string
	want, got reading
}

// meaningExplanation justifies one kind of difference in a rebuilt response.
type meaningExplanation struct {
	name  string
	holds func(c change) bool
}

// meanings assigns differences to the explanations of a table. An explanation
// that matches nothing fails the test.
type meanings struct {
	table   []meaningExplanation
	counts  map[string]int
	unknown map[string]string
	n       map[string]int
}

func newMeanings(table []meaningExplanation) *meanings {
	return &meanings{table: table, counts: map[string]int{}, unknown: map[string]string{}, n: map[string]int{}}
}

// add compares two readings and returns a label for the table of counts.
func (m *meanings) add(id string, want, got reading) string {
	lines := want.differences(got)
	if len(lines) == 0 {
		return " with the same meaning"
	}
next:
	for _, line := range lines {
		for _, x := range m.table {
			if x.holds(change{line, want, got}) {
				m.counts[x.name]++
				continue next
			}
		}
		kind, _, _ := strings.Cut(line, ":")
		m.n[kind]++
		if m.n[kind] == 1 {
			m.unknown[kind] = id + " " + line
		}
	}
	return " with changes that are explained or fail"
}

func (m *meanings) report(t *testing.T, what string) {
	t.Helper()
	for kind, example := range m.unknown {
		t.Errorf("%s: %d change(s) of %s, first: %s", what, m.n[kind], kind, example)
	}
	for _, x := range m.table {
		if m.counts[x.name] == 0 {
			t.Errorf("%s: the explanation %q explains nothing any more; remove it", what, x.name)
			continue
		}
		t.Logf("%s: %5d × %s", what, m.counts[x.name], x.name)
	}
}
