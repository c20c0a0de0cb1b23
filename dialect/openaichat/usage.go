package openaichat

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// readUsage reads usage in the formats of OpenAI and compatible servers. Input and output are
// totals. If the total only adds up with reasoning, the server does not include reasoning in its
// completion tokens.
func readUsage(r *jsonwire.Reader, rep *dragoman.Report) (u dragoman.Usage) {
	if !wirekit.HasCounts(r, []byte("usage"), rep) {
		return u
	}
	var total dragoman.Count
	detailed, alternative := false, false
	for key := range r.Object() {
		switch string(key) {
		case "prompt_tokens":
			u.Input = wirekit.Count(r, key, rep)
		case "completion_tokens":
			u.Output = wirekit.Count(r, key, rep)
		case "total_tokens":
			total = wirekit.Count(r, key, rep)
		case "prompt_tokens_details":
			if !wirekit.HasCounts(r, key, rep) {
				continue
			}
			for key := range r.Object() {
				switch string(key) {
				case "cached_tokens":
					u.CacheRead = wirekit.Count(r, key, rep)
					detailed = true
				case "cache_write_tokens":
					u.CacheWrite = wirekit.Count(r, key, rep)
				default:
					extra.Add(&u.Extra, name, "/prompt_tokens_details", key, clone(r.Raw()))
				}
			}
		case "completion_tokens_details":
			if !wirekit.HasCounts(r, key, rep) {
				continue
			}
			for key := range r.Object() {
				if string(key) == "reasoning_tokens" {
					u.Reasoning = wirekit.Count(r, key, rep)
				} else {
					extra.Add(&u.Extra, name, "/completion_tokens_details", key, clone(r.Raw()))
				}
			}
		case "prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens":
			raw := clone(r.Raw())
			if n := wirekit.Count(jsonwire.NewReader(raw), key, rep); n.Known && !u.CacheRead.Known {
				u.CacheRead = n
			}
			extra.Add(&u.Extra, name, "", key, raw)
			alternative = true
		default:
			extra.Add(&u.Extra, name, "", key, clone(r.Raw()))
		}
	}
	if detailed && alternative { // both fields are written back
		extra.Add(&u.Extra, name, "/prompt_tokens_details", []byte("cached_tokens"), number(u.CacheRead.N))
	}
	if total.Known && u.Input.Known && u.Output.Known && u.Reasoning.N > 0 && total.N == wirekit.Sum(u.Input.N, u.Output.N, u.Reasoning.N) {
		u.Output.N = wirekit.Sum(u.Output.N, u.Reasoning.N)
	}
	if total.Known && total.N != wirekit.Sum(u.Input.N, u.Output.N) {
		extra.Add(&u.Extra, name, "", []byte("total_tokens"), number(total.N))
	}
	return u
}

func number(n int64) []byte {
	var w jsonwire.Writer
	w.Int(n)
	return w.Buf
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

func hasUsage(u dragoman.Usage) bool {
	return u.Input.N > 0 || u.Output.N > 0 || u.CacheRead.N > 0 || u.Reasoning.N > 0
}

func writeUsage(w *jsonwire.Writer, u dragoman.Usage, rep *dragoman.Report) {
	u = wirekit.FillTotals(u, rep)
	wirekit.ReportTotals(rep, u)
	w.BeginObject()
	w.IntField("prompt_tokens", u.Input.N)
	w.IntField("completion_tokens", u.Output.N)
	if _, own := extra.Get(u.Extra, name, "/total_tokens"); !own {
		w.IntField("total_tokens", wirekit.Sum(u.Input.N, u.Output.N))
	}
	alternative := false
	for _, k := range []string{"/prompt_cache_hit_tokens", "/cached_tokens", "/num_cached_tokens"} {
		_, own := extra.Get(u.Extra, name, k)
		alternative = alternative || own
	}
	if u.CacheRead.Known && !alternative || u.CacheWrite.Known || extra.Has(u.Extra, name, "/prompt_tokens_details") {
		w.Key("prompt_tokens_details")
		w.BeginObject()
		if u.CacheRead.Known && !alternative {
			w.IntField("cached_tokens", u.CacheRead.N)
		}
		if u.CacheWrite.Known {
			w.IntField("cache_write_tokens", u.CacheWrite.N)
		}
		extra.Write(w, u.Extra, name, "/prompt_tokens_details")
		w.EndObject()
	}
	if u.Reasoning.Known || extra.Has(u.Extra, name, "/completion_tokens_details") {
		w.Key("completion_tokens_details")
		w.BeginObject()
		if u.Reasoning.Known {
			w.IntField("reasoning_tokens", u.Reasoning.N)
		}
		extra.Write(w, u.Extra, name, "/completion_tokens_details")
		w.EndObject()
	}
	extra.End(w, u.Extra, name, extra.At("/usage"), rep)
}
