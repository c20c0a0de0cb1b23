package wirekit

import (
	"math"

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

// ReportTotals reports unknown totals that are written as zero, because clients of the API
// require them.
func ReportTotals(rep *dragoman.Report, u dragoman.Usage) {
	if !u.Input.Known || !u.Output.Known {
		rep.Add(dragoman.Synthesized, dragoman.Info, "/usage", "unknown counts written as 0, because clients demand them")
	}
}

// AddUp replaces unknown totals by the sum of their known parts, which it reports, and then
// makes the counts consistent with [Within]. It is for APIs that always have totals.
func AddUp(u dragoman.Usage, rep *dragoman.Report) dragoman.Usage {
	atLeast(&u.Output, u.Reasoning.N, "output", rep)
	atLeast(&u.Input, Sum(u.CacheRead.N, u.CacheWrite.N), "input", rep)
	return Within(u, rep)
}

func atLeast(whole *dragoman.Count, parts int64, name string, rep *dragoman.Report) {
	if whole.Known || parts <= 0 {
		return
	}
	*whole = dragoman.Counted(parts)
	rep.Addf(dragoman.Synthesized, dragoman.Info, "/usage/"+name, "the server did not report this count; written as %d, the sum of its known parts", parts)
}

// Within gives counts of which no part is more than its whole, as every wire has them and
// clients do their sums: reasoning is output, and what was read from or written to a cache
// is input. Some servers count reasoning apart. Of a part that is more, as much is told as
// the whole has, and that is reported.
func Within(u dragoman.Usage, rep *dragoman.Report) dragoman.Usage {
	if u.Output.Known {
		bound(&u.Reasoning, u.Output.N, "reasoning", rep)
	}
	if u.Input.Known {
		bound(&u.CacheRead, u.Input.N, "cache_read", rep)
		bound(&u.CacheWrite, u.Input.N-u.CacheRead.N, "cache_write", rep)
	}
	return u
}

func bound(part *dragoman.Count, most int64, name string, rep *dragoman.Report) {
	if part.N <= most {
		return
	}
	rep.Addf(dragoman.Lowered, dragoman.Info, "/usage/"+name, "%d written as %d: a part is not more than its whole", part.N, most)
	part.N = most
}

// Sum adds counts without wrapping around.
func Sum(counts ...int64) (sum int64) {
	for _, n := range counts {
		if sum > math.MaxInt64-n {
			return math.MaxInt64
		}
		sum += n
	}
	return sum
}
