package ollama

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// readUsage reads a usage field of a response and reports whether key is one. The server omits
// counters that are zero, so an absent count is unknown. Durations are kept in nanoseconds.
func readUsage(r *jsonwire.Reader, key []byte, u *dragoman.Usage, rep *dragoman.Report) bool {
	switch string(key) {
	case "prompt_eval_count":
		u.Input = wirekit.Count(r, key, rep)
	case "prompt_eval_cached_count":
		u.CacheRead = wirekit.Count(r, key, rep)
	case "eval_count":
		u.Output = wirekit.Count(r, key, rep)
	case "total_duration", "load_duration", "prompt_eval_duration", "eval_duration":
		extra.Add(&u.Extra, name, "", key, bytes.Clone(r.Raw()))
	default:
		return false
	}
	return true
}

func writeUsage(w *jsonwire.Writer, u dragoman.Usage, rep *dragoman.Report) {
	u = wirekit.ClampUsage(u, rep)
	extra.Write(w, u.Extra, name, "")
	count := func(key string, c dragoman.Count) {
		if c.Known {
			w.IntField(key, c.N)
		}
	}
	count("prompt_eval_count", u.Input)
	count("prompt_eval_cached_count", u.CacheRead)
	count("eval_count", u.Output)
	if u.CacheWrite.Known {
		rep.Add(dragoman.Dropped, dragoman.Info, "/usage/cache_write", "Ollama does not report tokens written to a cache")
	}
	if u.Reasoning.Known {
		rep.Add(dragoman.Dropped, dragoman.Info, "/usage/reasoning", "Ollama does not report thinking tokens separately")
	}
	extra.ReportEcho(rep, u.Extra, name, extra.At("/usage"))
}
