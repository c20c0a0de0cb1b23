package gemini

import (
	"bytes"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// finishes are the candidates whose end a client was told by native chunks. An
// end is told once, so that one that stands is not told again; but servers also
// finish in the middle, and go on.
type finishes struct {
	told map[int]bool
	// seen are those of the chunk at hand: what its events say came before.
	seen  []int
	sight jsonwire.Reader
}

// settle takes the ends of the chunk before for told.
func (f *finishes) settle() {
	for _, i := range f.seen {
		if f.told == nil {
			f.told = map[int]bool{}
		}
		f.told[i] = true
	}
	f.seen = f.seen[:0]
}

// goesOn says that a candidate did not end yet.
func (f *finishes) goesOn(i int) { delete(f.told, i) }

// see looks for ends in a native chunk. What it cannot read is the decoder's to
// refuse.
func (f *finishes) see(doc []byte) {
	if !bytes.Contains(doc, []byte("inish")) || len(doc) == 0 {
		return
	}
	r := &f.sight
	if r.Reset(doc); r.Kind() != '{' {
		return
	}
	for key := range r.Object() {
		if string(key) == "candidates" && r.Kind() == '[' {
			f.candidates(r)
		} else {
			r.Skip()
		}
	}
}

func (f *finishes) candidates(r *jsonwire.Reader) {
	for i := range r.Array() {
		if r.Kind() != '{' {
			continue
		}
		index, finished := i, false
		for key := range r.Object() {
			switch member := string(jsonwire.Camel(key)); {
			case member == "finishReason":
				finished = word(r) != ""
			case member == "index" && r.Kind() == '0':
				index = int(min(max(r.Int(), 0), maxCandidates))
			default:
				r.Skip()
			}
		}
		if finished {
			f.seen = append(f.seen, index)
		}
	}
}
