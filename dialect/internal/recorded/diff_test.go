package recorded_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
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
		return fmt.Sprintf("%.160s", traffic.JSONText(v))
	}
	return d.path + ": " + show(d.was) + " became " + show(d.is)
}

// diff lists where b differs from a. Keys are compared as sets, arrays in
// order, numbers by their spelling.
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
