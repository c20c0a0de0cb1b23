package wirekit

import (
	"math"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Count reads a token count, the field key of a usage object. Null means that the
// server does not know the count. A value that is not a count, such as a string or a
// negative number, is unknown as well, and is reported once.
func Count(r *jsonwire.Reader, key []byte, rep *dragoman.Report) dragoman.Count {
	if r.Null() {
		return dragoman.Count{}
	}
	n, ok := r.Count()
	if !ok && r.Err() == nil {
		noCount(rep, key, "not a token count")
	}
	return dragoman.Count{N: n, Known: ok}
}

// HasCounts reports whether the field key is an object, to be read for its counts. It
// consumes anything else, and reports it once unless it is null.
func HasCounts(r *jsonwire.Reader, key []byte, rep *dragoman.Report) bool {
	switch r.Kind() {
	case '{':
		return true
	case 'n':
		r.Skip()
	default:
		if r.Skip(); r.Err() == nil {
			noCount(rep, key, "not an object")
		}
	}
	return false
}

// noCount reports a field that is not a count. The detail does not quote the value, so
// that a stream with many of them gets one line.
func noCount(rep *dragoman.Report, key []byte, what string) {
	l := dragoman.Loss{
		Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: "/usage",
		Detail: string(key) + " is " + what + "; the count is unknown",
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
		rep.Add(dragoman.Synthesized, dragoman.Info, "/usage", "unknown counts written as 0, because clients require them")
	}
}

// FillTotals replaces unknown totals with the sum of their known parts, which it reports, and then
// makes the counts consistent with [ClampUsage]. It is for APIs that always have totals.
func FillTotals(u dragoman.Usage, rep *dragoman.Report) dragoman.Usage {
	atLeast(&u.Output, u.Reasoning.N, "output", rep)
	atLeast(&u.Input, Sum(u.CacheRead.N, u.CacheWrite.N), "input", rep)
	return ClampUsage(u, rep)
}

func atLeast(whole *dragoman.Count, parts int64, name string, rep *dragoman.Report) {
	if whole.Known || parts <= 0 {
		return
	}
	*whole = dragoman.Counted(parts)
	rep.Addf(dragoman.Synthesized, dragoman.Info, "/usage/"+name, "the server did not report this count; written as %d, the sum of its known parts", parts)
}

// ClampUsage limits each part of a count to its whole, because clients add and subtract
// them: reasoning tokens are output, and tokens read from or written to a cache are
// input. Some servers count reasoning separately. A part that exceeds its whole is
// lowered and reported.
func ClampUsage(u dragoman.Usage, rep *dragoman.Report) dragoman.Usage {
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
	rep.Addf(dragoman.Lowered, dragoman.Info, "/usage/"+name, "%d written as %d: a part must not exceed its whole", part.N, most)
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
