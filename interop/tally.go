package interop

import dragoman "github.com/dragoman-go/dragoman"

// maxListed is the number of losses of one kind and severity that are reported one by one for a
// list of tools, so that a hostile list cannot make the report arbitrarily long.
const maxListed = 1000

type lossClass struct {
	kind     dragoman.LossKind
	severity dragoman.Severity
}

// tally moves losses into a report: the first ones of each kind and severity one by one, the
// others as a number.
type tally struct {
	count map[lossClass]int
	order []lossClass
}

// move moves the losses of sub.
func (t *tally) move(rep, sub *dragoman.Report) {
	for _, l := range sub.Losses {
		k := lossClass{l.Kind, l.Severity}
		if t.count[k] == 0 {
			t.order = append(t.order, k)
		}
		put(&t.count, k, t.count[k]+1)
		if t.count[k] <= maxListed {
			rep.Losses = append(rep.Losses, l)
		}
	}
	clear(sub.Losses)
	sub.Losses = sub.Losses[:0]
}

// finish moves the rest and reports the numbers.
func (t *tally) finish(rep, sub *dragoman.Report) {
	t.move(rep, sub)
	for _, k := range t.order {
		if more := t.count[k] - maxListed; more > 0 {
			rep.Addf(k.kind, k.severity, "/tools", "%d more losses of these kinds", more)
		}
	}
}
