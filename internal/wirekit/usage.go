package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Count reads a number of tokens, the member key of a usage object. Null is one
// that the server does not know; so is what is no count, such as a word, or less
// than nothing, which is reported, once.
func Count(r *jsonwire.Reader, key []byte, rep *dragoman.Report) dragoman.Count {
	if r.Null() {
		return dragoman.Count{}
	}
	n, ok := r.Count()
	if !ok && r.Err() == nil {
		noCount(rep, key, "no number of tokens")
	}
	return dragoman.Count{N: n, Known: ok}
}

// HasCounts reports whether the member key is an object, to be read for its
// counts. Anything else is consumed, and reported, once, unless it is null.
func HasCounts(r *jsonwire.Reader, key []byte, rep *dragoman.Report) bool {
	switch r.Kind() {
	case '{':
		return true
	case 'n':
		r.Skip()
	default:
		if r.Skip(); r.Err() == nil {
			noCount(rep, key, "no object")
		}
	}
	return false
}

// noCount reports a member that counts nothing. The line does not quote the
// value, so that a stream with many of them gets one.
func noCount(rep *dragoman.Report, key []byte, what string) {
	l := dragoman.Loss{
		Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: "/usage",
		Detail: string(key) + " is " + what + "; what it counts is unknown",
	}
	for i := range rep.Losses {
		if rep.Losses[i] == l {
			return
		}
	}
	rep.Losses = append(rep.Losses, l)
}

// ReportTotals reports that totals which nobody told are written as zero, for a wire
// whose clients demand them.
func ReportTotals(rep *dragoman.Report, u dragoman.Usage) {
	if !u.Input.Known || !u.Output.Known {
		rep.Add(dragoman.Synthesised, dragoman.Info, "/usage", "unknown counts written as 0, because clients demand them")
	}
}
