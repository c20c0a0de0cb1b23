package recorded_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// difference is one place at which a rebuilt document differs from the original.
type difference struct {
	// path is a pointer with * for every array position.
	path string
	// was and is are the values on both sides; absent if a side has no value.
	was, is any
	// among holds all differences of the document.
	among []difference
}

// at returns the difference at path, if there is one.
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
		return fmt.Sprintf("%.160s", traffic.JSONText(v))
	}
	return d.path + ": " + show(d.was) + " became " + show(d.is)
}

// diff lists where b differs from a. It compares keys as sets, arrays in
// order, and numbers by their text.
func diff(path string, a, b any) []difference {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	if am, bm := traffic.Object(a), traffic.Object(b); am != nil && bm != nil {
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

// explanation justifies one kind of difference in a rebuilt document.
type explanation struct {
	name string
	// holds reports whether the explanation covers d.
	holds func(d difference) bool
}

// explanationCounts assigns differences to the explanations of a table. An explanation
// that matches nothing fails the test.
type explanationCounts struct {
	table   []explanation
	counts  map[string]int
	unknown map[string]string // an example, by difference without its values
	n       map[string]int
}

func explain(table []explanation) *explanationCounts {
	return &explanationCounts{table: table, counts: map[string]int{}, unknown: map[string]string{}, n: map[string]int{}}
}

func (e *explanationCounts) add(id string, ds []difference) {
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

func (e *explanationCounts) report(t *testing.T, what string) {
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
