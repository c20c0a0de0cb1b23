package gemini

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// counters accumulates the usage objects of a response. The usage of a chunk is
// a running total, so a later one replaces the counts before it. Chunks also
// omit counts or write zero for them. An object whose counts do not add up to
// its total is therefore merged field by field, and zero never replaces a count
// (quirk C31).
type counters struct {
	counts

	tier  string
	extra *dragoman.Extra
	bound *stream.Bound // limits a stream; nil for a complete response
}

// counts holds the numbers of one usage object.
type counts struct {
	prompt, tools, cached, candidates, thoughts, total dragoman.Count
}

// addsUp reports whether an object has output counts that add up to its total,
// so that a missing count is zero.
func (c *counts) addsUp() bool {
	output := wirekit.Sum(c.candidates.N, c.thoughts.N)
	return c.total.Known && output > 0 && wirekit.Sum(wirekit.Sum(c.prompt.N, c.tools.N), output) == c.total.N
}

// merge applies the counts of a later object.
func (c *counts) merge(later counts) {
	if later.addsUp() {
		if !later.cached.Known && later.prompt.N >= c.cached.N {
			later.cached = c.cached // part of the prompt, so not in the sum
		}
		*c = later
		return
	}
	for _, n := range []struct{ have, now *dragoman.Count }{
		{&c.prompt, &later.prompt},
		{&c.tools, &later.tools},
		{&c.cached, &later.cached},
		{&c.candidates, &later.candidates},
		{&c.thoughts, &later.thoughts},
		{&c.total, &later.total},
	} {
		if n.now.Known && (n.now.N != 0 || !n.have.Known) {
			*n.have = *n.now
		}
	}
}

// keep stores a field that has no canonical count.
func (c *counters) keep(key, raw []byte) {
	c.bound.Take(extra.AddCopy(&c.extra, name, "", key, raw))
}

// read decodes a usage object.
func (c *counters) read(r *jsonwire.Reader, rep *dragoman.Report) {
	if !wirekit.HasCounts(r, []byte("usageMetadata"), rep) {
		return
	}
	var now counts
	count := func(n *dragoman.Count, key []byte) {
		if v := wirekit.Count(r, key, rep); v.Known && (v.N != 0 || !n.Known) {
			*n = v
		}
	}
	for key := range r.Object() {
		switch string(jsonwire.Camel(key)) {
		case "promptTokenCount":
			count(&now.prompt, key)
		case "toolUsePromptTokenCount":
			count(&now.tools, key)
		case "cachedContentTokenCount":
			count(&now.cached, key)
		case "candidatesTokenCount", "responseTokenCount":
			count(&now.candidates, key)
		case "thoughtsTokenCount":
			count(&now.thoughts, key)
		case "totalTokenCount":
			count(&now.total, key)
		case "serviceTier":
			if r.Kind() == '"' {
				c.tier = r.StringLike(c.tier)
			} else {
				c.keep(key, r.Raw())
			}
		default:
			c.keep(key, r.Raw())
		}
	}
	c.merge(now)
}

// usage returns the canonical counts. Tokens read by hosted tools count as
// input, thoughts as output (quirk J12).
func (c *counters) usage() dragoman.Usage {
	u := dragoman.Usage{CacheRead: c.cached, Reasoning: c.thoughts}
	if c.prompt.Known {
		u.Input = dragoman.Counted(wirekit.Sum(c.prompt.N, c.tools.N))
	}
	if c.candidates.Known || c.thoughts.Known {
		u.Output = dragoman.Counted(wirekit.Sum(c.candidates.N, c.thoughts.N))
	}
	if c.total.Known && (!u.Input.Known || c.total.N != wirekit.Sum(u.Input.N, u.Output.N)) { // otherwise redundant
		extra.Add(&c.extra, name, "", []byte("totalTokenCount"), digits(c.total.N))
	}
	if c.tools.Known {
		extra.Add(&c.extra, name, "", []byte("toolUsePromptTokenCount"), digits(c.tools.N))
	}
	u.Extra = c.extra
	return u
}

func digits(n int64) []byte {
	var w jsonwire.Writer
	w.Int(n)
	return w.Buf
}

// responseTiers maps the service tiers of responses.
func responseTiers() wirekit.Tiers {
	return wirekit.Tiers{Dialect: name, Ordinary: "standard", Known: func(tier string) bool {
		switch tier {
		case "standard", "flex", "priority":
			return true
		default:
			return false
		}
	}}
}

// writeUsage writes the usage object. It omits unknown counts, and zero counts
// that the API would omit. The total is the sum of the written counts, unless
// the API reported one that differs.
func writeUsage(w *jsonwire.Writer, u dragoman.Usage, tier string, rep *dragoman.Report) {
	u = wirekit.FillTotals(u, rep)
	var tools, total int64
	counted := false
	if raw, ok := extra.Get(u.Extra, name, "/toolUsePromptTokenCount"); ok { // written with the extra fields
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
		rep.Add(dragoman.Dropped, dragoman.Info, "/usage/cache_write", "the API does not report cache writes")
	}
}
