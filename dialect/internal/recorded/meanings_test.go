package recorded_test

import (
	"strings"
	"testing"
)

// change is one line of what a rebuilt answer says otherwise.
type change struct {
	line      string
	want, got reading
}

// meaningExplanation says why a rebuilt answer may say something otherwise.
type meaningExplanation struct {
	name  string
	holds func(c change) bool
}

// meanings sorts changes of meaning under the explanations of a table, each of
// which must explain something.
type meanings struct {
	table   []meaningExplanation
	counts  map[string]int
	unknown map[string]string
	n       map[string]int
}

func newMeanings(table []meaningExplanation) *meanings {
	return &meanings{table: table, counts: map[string]int{}, unknown: map[string]string{}, n: map[string]int{}}
}

// add compares two readings and says, for the table of counts, how they fared.
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
