package openairesponses

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// readUsage reads usage. Input and output are totals; an inconsistent total is kept.
func readUsage(r *jsonwire.Reader, rep *dragoman.Report) (u dragoman.Usage) {
	if !wirekit.HasCounts(r, []byte("usage"), rep) {
		return u
	}
	var total dragoman.Count
	for key := range r.Object() {
		switch string(key) {
		case "input_tokens":
			u.Input = wirekit.Count(r, key, rep)
		case "output_tokens":
			u.Output = wirekit.Count(r, key, rep)
		case "total_tokens":
			total = wirekit.Count(r, key, rep)
		case "input_tokens_details":
			if !wirekit.HasCounts(r, key, rep) {
				continue
			}
			for key := range r.Object() {
				switch string(key) {
				case "cached_tokens":
					u.CacheRead = wirekit.Count(r, key, rep)
				case "cache_write_tokens":
					u.CacheWrite = wirekit.Count(r, key, rep)
				default:
					extra.Add(&u.Extra, name, "/input_tokens_details", key, r.Raw())
				}
			}
		case "output_tokens_details":
			if !wirekit.HasCounts(r, key, rep) {
				continue
			}
			for key := range r.Object() {
				if string(key) == "reasoning_tokens" {
					u.Reasoning = wirekit.Count(r, key, rep)
				} else {
					extra.Add(&u.Extra, name, "/output_tokens_details", key, r.Raw())
				}
			}
		default:
			extra.Add(&u.Extra, name, "", key, r.Raw())
		}
	}
	if total.Known && total.N != wirekit.Sum(u.Input.N, u.Output.N) {
		var w jsonwire.Writer
		w.Int(total.N)
		extra.Add(&u.Extra, name, "", []byte("total_tokens"), w.Buf)
	}
	return u
}

func known(u dragoman.Usage) bool { return u.Input.Known || u.Output.Known }

// writeUsage writes usage, or null if it is unknown. Clients require the details, so an unknown
// count is written as zero and reported.
func writeUsage(w *jsonwire.Writer, u dragoman.Usage, rep *dragoman.Report) {
	if !known(u) {
		w.Null()
		return
	}
	u = wirekit.FillTotals(u, rep)
	orZero := func(c dragoman.Count, what string) int64 {
		if !c.Known {
			rep.Add(dragoman.Synthesized, dragoman.Info, "/usage/"+what, "the server did not report this count; it is written as 0")
		}
		return c.N
	}
	w.BeginObject()
	w.IntField("input_tokens", orZero(u.Input, "input"))
	w.Key("input_tokens_details")
	w.BeginObject()
	w.IntField("cached_tokens", orZero(u.CacheRead, "cache_read"))
	if u.CacheWrite.Known {
		w.IntField("cache_write_tokens", u.CacheWrite.N)
	}
	extra.Write(w, u.Extra, name, "/input_tokens_details")
	w.EndObject()
	w.IntField("output_tokens", orZero(u.Output, "output"))
	w.Key("output_tokens_details")
	w.BeginObject()
	w.IntField("reasoning_tokens", orZero(u.Reasoning, "reasoning"))
	extra.Write(w, u.Extra, name, "/output_tokens_details")
	w.EndObject()
	if _, own := extra.Get(u.Extra, name, "/total_tokens"); !own {
		w.IntField("total_tokens", wirekit.Sum(u.Input.N, u.Output.N))
	}
	extra.Write(w, u.Extra, name, "")
	w.EndObject()
	extra.ReportEcho(rep, u.Extra, name, extra.At("/usage"))
}
