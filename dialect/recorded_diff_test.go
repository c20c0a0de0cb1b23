package dialect_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// difference is one place at which a rebuilt document is not the original.
type difference struct {
	// path is a pointer with * for every array position.
	path string
	// was and is are the values on both sides; absent where there is none.
	was, is any
	// among are all differences of the document.
	among []difference
}

// at returns the difference in a place, if there is one.
func (d difference) at(path string) (difference, bool) {
	for _, o := range d.among {
		if o.path == path {
			return o, true
		}
	}
	return difference{}, false
}

type absence struct{}

var absent any = absence{}

func (d difference) String() string {
	show := func(v any) string {
		if v == absent {
			return "(absent)"
		}
		return fmt.Sprintf("%.160s", jsonText(v))
	}
	return d.path + ": " + show(d.was) + " became " + show(d.is)
}

// diff lists where b differs from a. Keys are compared as sets, arrays in
// order, numbers by their spelling.
func diff(path string, a, b any) []difference {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	if am, bm := obj(a), obj(b); am != nil && bm != nil {
		var out []difference
		keys := map[string]bool{}
		for k := range am {
			keys[k] = true
		}
		for k := range bm {
			keys[k] = true
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			av, ok := am[k]
			if !ok {
				av = absent
			}
			bv, ok := bm[k]
			if !ok {
				bv = absent
			}
			out = append(out, diff(path+"/"+k, av, bv)...)
		}
		return out
	}
	al, aok := a.([]any)
	bl, bok := b.([]any)
	if aok && bok && len(al) == len(bl) {
		var out []difference
		for i := range al {
			out = append(out, diff(path+"/*", al[i], bl[i])...)
		}
		return out
	}
	return []difference{{path: path, was: a, is: b}}
}

// explanation says why a rebuilt document may differ in a place.
type explanation struct {
	name string
	// holds reports whether d is this difference.
	holds func(d difference) bool
}

// explained sorts differences under the explanations of a table. Every entry
// must earn its place: one that explains nothing fails the test.
type explained struct {
	table   []explanation
	counts  map[string]int
	unknown map[string]string // by difference without its values, an example
	n       map[string]int
}

func explain(table []explanation) *explained {
	return &explained{table: table, counts: map[string]int{}, unknown: map[string]string{}, n: map[string]int{}}
}

func (e *explained) add(id string, ds []difference) {
next:
	for _, d := range ds {
		d.among = ds
		for _, x := range e.table {
			if x.holds(d) {
				e.counts[x.name]++
				continue next
			}
		}
		e.n[d.path]++
		if _, ok := e.unknown[d.path]; !ok {
			e.unknown[d.path] = id + " " + d.String()
		}
	}
}

func (e *explained) report(t *testing.T, what string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(e.unknown)) {
		t.Errorf("%s: %d unexplained difference(s), first: %s", what, e.n[path], e.unknown[path])
	}
	for _, x := range e.table {
		if e.counts[x.name] == 0 {
			t.Errorf("%s: the explanation %q explains nothing any more; remove it", what, x.name)
			continue
		}
		t.Logf("%s: %5d × %s", what, e.counts[x.name], x.name)
	}
}

// tally counts what was checked, in rows of a table.
type tally struct {
	rows []string
	n    map[string]int
}

func (t *tally) add(row string, n int) {
	if t.n == nil {
		t.n = map[string]int{}
	}
	if _, ok := t.n[row]; !ok {
		t.rows = append(t.rows, row)
	}
	t.n[row] += n
}

// table prints tallies side by side.
func table(heads []string, ts []*tally) string {
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

// checkedList is a list of known exceptions by id. An entry that no longer
// occurs fails the test, as does an exception without an entry.
type checkedList struct {
	reasons map[string]string
	seen    map[string]bool
}

func checked(reasons map[string]string) *checkedList {
	return &checkedList{reasons: reasons, seen: map[string]bool{}}
}

func (l *checkedList) has(id string) bool {
	_, ok := l.reasons[id]
	l.seen[id] = true
	return ok
}

func (l *checkedList) report(t *testing.T, what string) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(l.reasons)) {
		if !l.seen[id] {
			t.Errorf("%s: %s is listed (%s) but no longer occurs; remove it", what, id, l.reasons[id])
		}
	}
}
