package gemini

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/stream"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// counters are the native numbers of a usage object. Chunks of a stream leave
// some out and repeat others: the last that is not zero counts (quirk C31).
type counters struct {
	prompt, tools, cached, candidates, thoughts, total dragoman.Count

	tier  string
	extra *dragoman.Extra
	bound *stream.Bound // of a stream; nil for a whole answer
}

// keep keeps a member that is no canonical count.
func (c *counters) keep(key, raw []byte) {
	c.bound.Take(extra.AddCopy(&c.extra, name, "", key, raw))
}

// read takes a usage object.
func (c *counters) read(r *jsonwire.Reader, rep *dragoman.Report) {
	if !wirekit.HasCounts(r, []byte("usageMetadata"), rep) {
		return
	}
	count := func(n *dragoman.Count, key []byte) {
		if v := wirekit.Count(r, key, rep); v.Known && (v.N != 0 || !n.Known) {
			*n = v
		}
	}
	for key := range r.Object() {
		switch string(jsonwire.Camel(key)) {
		case "promptTokenCount":
			count(&c.prompt, key)
		case "toolUsePromptTokenCount":
			count(&c.tools, key)
			c.keep(key, digits(c.tools.N))
		case "cachedContentTokenCount":
			count(&c.cached, key)
		case "candidatesTokenCount", "responseTokenCount":
			count(&c.candidates, key)
		case "thoughtsTokenCount":
			count(&c.thoughts, key)
		case "totalTokenCount":
			count(&c.total, key)
		case "serviceTier":
			if r.Kind() == '"' {
				c.tier = r.Again(c.tier)
			} else {
				c.keep(key, r.Raw())
			}
		default:
			c.keep(key, r.Raw())
		}
	}
}

// usage gives the canonical counts: what the tools of the provider read is input
// too, and thoughts are output (quirk J12).
func (c *counters) usage() dragoman.Usage {
	u := dragoman.Usage{CacheRead: c.cached, Reasoning: c.thoughts, Extra: c.extra}
	if c.prompt.Known {
		u.Input = dragoman.Counted(wirekit.Sum(c.prompt.N, c.tools.N))
	}
	if c.candidates.Known || c.thoughts.Known {
		u.Output = dragoman.Counted(wirekit.Sum(c.candidates.N, c.thoughts.N))
	}
	if c.total.Known && (!u.Input.Known || c.total.N != wirekit.Sum(u.Input.N, u.Output.N)) { // else it says nothing new
		extra.Add(&c.extra, name, "", []byte("totalTokenCount"), digits(c.total.N))
		u.Extra = c.extra
	}
	return u
}

func digits(n int64) []byte {
	var w jsonwire.Writer
	w.Int(n)
	return w.Buf
}

// answerTiers are the words of answers for how urgently they were made.
func answerTiers() wirekit.Tiers {
	return wirekit.Tiers{Dialect: name, Ordinary: "standard", Known: func(tier string) bool {
		switch tier {
		case "standard", "flex", "priority":
			return true
		default:
			return false
		}
	}}
}

// writeUsage writes the usage object. What is unknown is left out, and so is a
// count of nothing that the API would leave out. The total is that of the counts
// that are written, unless the API told one that says more.
func writeUsage(w *jsonwire.Writer, u dragoman.Usage, tier string, rep *dragoman.Report) {
	u = wirekit.AddUp(u, rep)
	var tools, total int64
	counted := false
	if raw, ok := extra.Get(u.Extra, name, "/toolUsePromptTokenCount"); ok { // it is written with the extras
		tools = jsonwire.NewReader(raw).Int()
		total, counted = tools, true
	}
	count := func(key string, n int64) {
		w.IntField(key, n)
		total, counted = wirekit.Sum(total, n), true
	}
	w.BeginObject()
	if u.Input.Known {
		count("promptTokenCount", max(u.Input.N-tools, 0))
	}
	if u.CacheRead.Known {
		w.IntField("cachedContentTokenCount", u.CacheRead.N) // part of the prompt
	}
	if n := max(u.Output.N-u.Reasoning.N, 0); u.Output.Known && (n > 0 || !u.Reasoning.Known) {
		count("candidatesTokenCount", n)
	}
	if u.Reasoning.Known {
		count("thoughtsTokenCount", u.Reasoning.N)
	}
	if _, ok := extra.Get(u.Extra, name, "/totalTokenCount"); !ok && (counted || u.CacheRead.Known) {
		w.IntField("totalTokenCount", total)
	}
	w.StringFieldIf("serviceTier", tier)
	extra.WriteBut(w, u.Extra, name, "", func(f dragoman.Field) bool { return f.Path == "/serviceTier" && tier != "" })
	w.EndObject()
	extra.ReportEcho(rep, u.Extra, name, extra.At("/usage"))
	if u.CacheWrite.Known && u.CacheWrite.N > 0 {
		rep.Add(dragoman.Dropped, dragoman.Info, "/usage/cache_write", "the API tells nothing of what was written to a cache")
	}
}
