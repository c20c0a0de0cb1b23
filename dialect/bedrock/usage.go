package bedrock

import (
	"strconv"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// counters holds the native counts of a usage object.
type counters struct {
	input, cacheRead, cacheWrite, output dragoman.Count
	totalRaw                             []byte
	extra                                *dragoman.Extra
}

// read decodes a usage object. Null counts are unknown.
func (c *counters) read(r *jsonwire.Reader, keep wirekit.Keeper, rep *dragoman.Report) {
	if !wirekit.HasCounts(r, []byte("usage"), rep) {
		return
	}
	count := func(n *dragoman.Count, key []byte) {
		if v := wirekit.Count(r, key, rep); v.Known {
			*n = v
		}
	}
	for key := range r.Object() {
		switch string(key) {
		case "inputTokens":
			count(&c.input, key)
		case "cacheReadInputTokens":
			count(&c.cacheRead, key)
		case "cacheWriteInputTokens":
			count(&c.cacheWrite, key)
		case "outputTokens":
			count(&c.output, key)
		case "totalTokens":
			if r.Null() {
				continue
			}
			if raw := r.Raw(); r.Err() == nil {
				c.totalRaw = keep.Bytes(c.totalRaw, raw)
			}
		default:
			keep.Field(&c.extra, name, "", key, r.Raw())
		}
	}
}

// usage returns the canonical counts. Input is everything the model read; the
// wire splits it into three counts (quirk J12). A total that is not the sum is
// stored.
func (c *counters) usage() dragoman.Usage {
	u := dragoman.Usage{CacheRead: c.cacheRead, CacheWrite: c.cacheWrite, Output: c.output}
	if c.extra != nil {
		u.Extra = extra.Clone(c.extra)
	}
	if c.input.Known {
		u.Input = dragoman.Counted(wirekit.Sum(c.input.N, c.cacheRead.N, c.cacheWrite.N))
	}
	if c.totalRaw != nil && string(c.totalRaw) != strconv.FormatInt(totalOf(u), 10) {
		extra.Add(&u.Extra, name, "", []byte("totalTokens"), c.totalRaw)
	}
	return u
}

func totalOf(u dragoman.Usage) int64 { return wirekit.Sum(u.Input.N, u.Output.N) }

// writeUsage writes a usage object. Clients require the three totals, so
// unknown counts are written as zero.
func writeUsage(w *jsonwire.Writer, u dragoman.Usage, rep *dragoman.Report) {
	u = wirekit.FillTotals(u, rep)
	wirekit.ReportTotals(rep, u)
	if u.Reasoning.Known {
		rep.Add(dragoman.Dropped, dragoman.Info, "/usage/reasoning", "the API does not count reasoning separately")
	}
	w.BeginObject()
	w.IntField("inputTokens", max(u.Input.N-u.CacheWrite.N-u.CacheRead.N, 0))
	w.IntField("outputTokens", u.Output.N)
	if _, ok := extra.Get(u.Extra, name, "/totalTokens"); !ok {
		w.IntField("totalTokens", totalOf(u))
	}
	if u.CacheRead.Known {
		w.IntField("cacheReadInputTokens", u.CacheRead.N)
	}
	if u.CacheWrite.Known {
		w.IntField("cacheWriteInputTokens", u.CacheWrite.N)
	}
	extra.End(w, u.Extra, name, extra.At("/usage"), rep)
}
