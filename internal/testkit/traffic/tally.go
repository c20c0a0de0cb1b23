package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Tally counts checked items, in the rows of a table.
type Tally struct {
	rows []string
	n    map[string]int
}

func (t *Tally) Add(row string, n int) {
	if t.n == nil {
		t.n = map[string]int{}
	}
	if _, ok := t.n[row]; !ok {
		t.rows = append(t.rows, row)
	}
	t.n[row] += n
}

// Table formats tallies side by side.
func Table(heads []string, ts []*Tally) string {
	var rows []string
	for _, t := range ts {
		for _, r := range t.rows {
			if !slices.Contains(rows, r) {
				rows = append(rows, r)
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-52s", "")
	for _, h := range heads {
		fmt.Fprintf(&b, "%24s", h)
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "\n%-52s", r)
		for _, t := range ts {
			cell := "-"
			if n, ok := t.n[r]; ok {
				cell = strconv.Itoa(n)
			}
			fmt.Fprintf(&b, "%24s", cell)
		}
	}
	return b.String()
}

// CheckedList is a list of known exceptions by id. An entry that no longer
// occurs fails the test, as does an exception without an entry.
type CheckedList struct {
	reasons map[string]string
	seen    map[string]bool
}

// Checked returns a list of known ids, each with a reason.
func Checked(reasons map[string]string) *CheckedList {
	return &CheckedList{reasons: reasons, seen: map[string]bool{}}
}

func (l *CheckedList) Has(id string) bool {
	_, ok := l.reasons[id]
	l.seen[id] = true
	return ok
}

func (l *CheckedList) Report(t *testing.T, what string) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(l.reasons)) {
		if !l.seen[id] {
			t.Errorf("%s: %s is listed (%s) but no longer occurs: remove it", what, id, l.reasons[id])
		}
	}
}
