package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// counters holds the native counts of a usage object. Streams send several;
// each has the totals so far and replaces earlier counts. Null replaces
// nothing.
type counters struct {
	input, cacheWrite, cacheRead, output, thinking dragoman.Count
	extra                                          *dragoman.Extra
	tier                                           string
}

// read decodes a usage object.
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
		case "input_tokens":
			count(&c.input, key)
		case "cache_creation_input_tokens":
			count(&c.cacheWrite, key)
		case "cache_read_input_tokens":
			count(&c.cacheRead, key)
		case "output_tokens":
			count(&c.output, key)
		case "output_tokens_details":
			if r.Kind() != '{' {
				keep.Field(&c.extra, name, "", key, r.Raw())
				continue
			}
			for key := range r.Object() {
				if string(key) == "thinking_tokens" {
					count(&c.thinking, key)
				} else {
					keep.Field(&c.extra, name, "/output_tokens_details", key, r.Raw())
				}
			}
		case "service_tier":
			if r.Kind() == '"' {
				c.tier = r.String()
			} else {
				keep.Field(&c.extra, name, "", key, r.Raw())
			}
		default:
			keep.Field(&c.extra, name, "", key, r.Raw())
		}
	}
}

// usage returns the canonical counts. Input is everything the model read; the
// wire splits it into three counts (quirk J12).
func (c *counters) usage() dragoman.Usage {
	u := dragoman.Usage{
		CacheRead: c.cacheRead, CacheWrite: c.cacheWrite,
		Output: c.output, Reasoning: c.thinking, Extra: c.extra,
	}
	if c.input.Known {
		u.Input = dragoman.Counted(wirekit.Sum(c.input.N, c.cacheWrite.N, c.cacheRead.N))
	}
	return u
}

// responseTiers maps the service tiers of responses.
func responseTiers() wirekit.Tiers {
	return wirekit.Tiers{Dialect: name, Ordinary: "standard", Known: func(tier string) bool {
		switch tier {
		case "standard", "priority", "batch":
			return true
		default:
			return false
		}
	}}
}

// writeUsage writes the usage object of a complete message. Clients require the
// two totals, so unknown counts are written as zero.
func writeUsage(w *jsonwire.Writer, u dragoman.Usage, tier string, rep *dragoman.Report) {
	u = wirekit.FillTotals(u, rep)
	wirekit.ReportTotals(rep, u)
	u.Input.Known = true
	writeCounters(w, u, tier)
	extra.Report(rep, u.Extra, name, extra.At("/usage"))
}

// writeCounters writes the counts after they are made to add up. The caller
// reports those changes, because it may have merged several usage objects.
func writeCounters(w *jsonwire.Writer, u dragoman.Usage, tier string) {
	u = wirekit.FillTotals(u, new(dragoman.Report))
	w.BeginObject()
	if u.Input.Known {
		w.IntField("input_tokens", max(u.Input.N-u.CacheWrite.N-u.CacheRead.N, 0))
	}
	if u.CacheWrite.Known {
		w.IntField("cache_creation_input_tokens", u.CacheWrite.N)
	}
	if u.CacheRead.Known {
		w.IntField("cache_read_input_tokens", u.CacheRead.N)
	}
	w.IntField("output_tokens", u.Output.N)
	if u.Reasoning.Known || extra.Has(u.Extra, name, "/output_tokens_details") {
		w.Key("output_tokens_details")
		w.BeginObject()
		if u.Reasoning.Known {
			w.IntField("thinking_tokens", u.Reasoning.N)
		}
		extra.Write(w, u.Extra, name, "/output_tokens_details")
		w.EndObject()
	}
	if tier != "" {
		w.StringField("service_tier", tier)
	}
	extra.WriteUnless(w, u.Extra, name, func(path string) bool {
		return path == "/service_tier" && tier != "" || path == "/output_tokens_details" && u.Reasoning.Known
	})
	w.EndObject()
}
