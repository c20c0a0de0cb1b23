package agent

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/targets"
	"github.com/dragoman-go/dragoman/tool"
)

// Search configures how deferred tools are found. Tools with [tool.Deferred] are not sent to
// the model until it has searched for them, so that hundreds of them cost nothing. A tool
// that was found stays loaded for the run. Tools that Settings.ToolChoice names are loaded
// from the beginning.
//
// The search of this package is a tool with the name "tool_search", or "tool_search_2" and
// so on if the agent has its own tool of that name. Its argument "query" holds words of
// names and descriptions. The planner of the simulator searches only if the prompt mentions
// it: see the example.
type Search struct {
	// LocalOnly uses the search of this package even if the model has one; by default the
	// provider's search is used if there is one.
	LocalOnly bool
	// MaxResults limits the number of tools that a search finds; zero means 5.
	MaxResults int
}

// searchName is the name of our search.
const searchName = "tool_search"

const defaultFound = 5

// targeter is a model that knows its target.
type targeter interface {
	Target(ctx context.Context, model string) (targets.Target, *extension.Resolution, error)
}

// native returns the provider's own search tool, or nil if ours is used.
func (s Search) native(m dragoman.Model, name string) *dragoman.ToolSpec {
	t, ok := m.(targeter)
	if !ok || s.LocalOnly {
		return nil
	}
	target, _, err := t.Target(context.Background(), name)
	if err != nil || target.Caps.NoDeferred || target.Caps.NoTools {
		return nil
	}
	hosted := dialects.WireOf(target.Dialect).ToolSearch
	if hosted == nil {
		return nil
	}
	spec := *hosted
	return &spec
}

// takenName reports whether one of the agent's own tools has a name, or a handoff that
// was given one: generated names avoid them (requirement I9).
func (p *preparedAgent) takenName(name string) bool {
	return anyNamed(p.Tools, name) ||
		slices.ContainsFunc(p.HostedTools, func(s dragoman.ToolSpec) bool { return s.Name == name }) ||
		slices.ContainsFunc(p.Handoffs, func(h Handoff) bool { return h.Name == name })
}

// anyNamed reports whether one of the tools has the name. It skips nil tools and tools
// without a spec, which the toolbox reports.
func anyNamed(tools []tool.Tool, name string) bool {
	return slices.ContainsFunc(tools, func(t tool.Tool) bool { return t != nil && t.Spec() != nil && t.Spec().Name == name })
}

// specs returns the tools of a request: first those that every request has, then the tools
// that were found, in the order in which they were found.
func (r *run) specs() []dragoman.ToolSpec {
	p := r.active
	if len(p.hidden) == 0 || p.native != nil {
		return slices.Clip(p.visible)
	}
	out := slices.Clone(p.visible)
	for _, key := range r.state.Found {
		for _, s := range p.hidden {
			if tool.KeyOf(&s) == key {
				s = p.distinct(s)
				s.Deferred = false
				out = append(out, s)
			}
		}
	}
	return out
}

// loadChosen loads the deferred tools that the tool choice of the agent names: the model
// must be able to call them, and may not be allowed to search.
func (r *run) loadChosen() {
	p := r.active
	if p.Settings.ToolChoice == nil || p.native != nil {
		return
	}
	for _, ref := range p.Settings.ToolChoice.Tools {
		for _, s := range p.hidden {
			if k := tool.KeyOf(&s); s.Name == ref.Name && s.Namespace == ref.Namespace && !slices.Contains(r.state.Found, k) {
				r.state.Found = append(r.state.Found, k)
			}
		}
	}
}

// distinct returns the spec of a tool for requests. If a tool that is not deferred has the
// same name as a deferred tool, the deferred tool gets the namespace of its calls, so the
// model can call both (requirement I2).
func (p *preparedAgent) distinct(s dragoman.ToolSpec) dragoman.ToolSpec {
	if k := tool.KeyOf(&s); k.Kind == "deferred_top_level" {
		if _, sibling := p.box.Find(tool.Key{Kind: codes.KeyBare, Name: k.Name}); sibling {
			s.Namespace = k.CallNamespace()
		}
	}
	return s
}

// isHidden reports whether a key belongs to a deferred tool.
func (p *preparedAgent) isHidden(k tool.Key) bool {
	return slices.ContainsFunc(p.hidden, func(s dragoman.ToolSpec) bool { return tool.KeyOf(&s) == k })
}

// found reports whether a deferred tool may be called.
func (r *run) found(k tool.Key) bool {
	return r.active.native != nil || slices.Contains(r.state.Found, k)
}

// withToolKey returns a call with the key of its tool: the model calls a deferred tool by its
// bare name, but the toolbox has it under another key.
func (p *preparedAgent) withToolKey(c *dragoman.ToolCall) *dragoman.ToolCall {
	if c.Namespace != "" {
		return c
	}
	if _, ok := p.box.Find(tool.Key{Kind: codes.KeyBare, Name: c.Name}); ok {
		return c
	}
	k := tool.Key{Kind: codes.KeyDeferred, Name: c.Name}
	if _, ok := p.box.Find(k); !ok {
		return c
	}
	out := k.Call(*c, false)
	return &out
}

// searchQuery is the input of our search.
type searchQuery struct {
	Query string `json:"query" doc:"words that say what the tool should do"`
}

// makeSearchTool returns our search.
func (p *preparedAgent) makeSearchTool() (tool.Tool, error) {
	most := p.Search.MaxResults
	if most <= 0 {
		most = defaultFound
	}
	text := fmt.Sprintf("Finds tools that are not loaded yet. There are %d. Describe what you need; the tools that are found can be called from the next turn on.", len(p.hidden))
	return tool.Make(toolname.Free(searchName, p.takenName), text, func(ctx context.Context, q searchQuery) (string, error) {
		found := rank(p.hidden, q.Query, most)
		if len(found) == 0 {
			return "No tool was found. Try other words.", nil
		}
		if r := runFrom(ctx); r != nil {
			r.addFound(found)
		}
		var b strings.Builder
		b.WriteString("Found, and loaded:\n")
		for _, s := range found {
			s = p.distinct(s)
			fmt.Fprintf(&b, "%s%s\n", foundLine(&s), firstLine(s.Description))
		}
		return b.String(), nil
	}, tool.ReadOnly(), tool.Set(func(s *tool.Settings) { s.Source, s.Trusted = codes.FromAgent, true }))
}

// foundLine returns the beginning of the line about a tool in a search result.
func foundLine(s *dragoman.ToolSpec) string { return "- " + s.QualifiedName() + ": " }

// reloadFound loads the tools of searches that are replayed from the journal: the process that
// ran them died before it stored the tools.
func (r *run) reloadFound(records []tool.Record) {
	p := r.active
	if p.searchTool == nil {
		return
	}
	key := tool.KeyOf(p.searchTool.Spec())
	for i := range records {
		rec := &records[i]
		if !rec.Replayed || !rec.OK || rec.Key != key {
			continue
		}
		var found []dragoman.ToolSpec
		for line := range strings.Lines(rec.Plain) {
			for _, s := range p.hidden {
				if named := p.distinct(s); strings.HasPrefix(line, foundLine(&named)) {
					found = append(found, s)
				}
			}
		}
		r.addFound(found)
	}
}

// addFound stores the tools that a search found.
func (r *run) addFound(found []dragoman.ToolSpec) {
	r.guarded.mu.Lock()
	defer r.guarded.mu.Unlock()
	for i := range found {
		if k := tool.KeyOf(&found[i]); !slices.Contains(r.newlyFound, k) && !slices.Contains(r.state.Found, k) {
			r.newlyFound = append(r.newlyFound, k)
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if len(line) > 200 {
		line = strings.ToValidUTF8(line[:200], "") + "…"
	}
	return line
}

// rank orders tools by how well their names and descriptions match a query: rare words count
// more, and words of the name most. It needs no model, and the order is deterministic.
func rank(specs []dragoman.ToolSpec, query string, most int) []dragoman.ToolSpec {
	asked := wordsOf(query)
	docs := make([]map[string]float64, len(specs))
	in := map[string]int{}
	for i := range specs {
		docs[i] = weights(&specs[i])
		for w := range docs[i] {
			in[w]++
		}
	}
	type hit struct {
		at    int
		score float64
	}
	var hits []hit
	for i, doc := range docs {
		score := 0.0
		for _, w := range asked {
			score += doc[w] * math.Log(1+float64(len(specs))/float64(1+in[w]))
		}
		if score > 0 {
			hits = append(hits, hit{i, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	out := make([]dragoman.ToolSpec, 0, most)
	for _, h := range hits[:min(most, len(hits))] {
		out = append(out, specs[h.at])
	}
	return out
}

// weights returns the words of a tool with their weights: words of its name weigh more than
// words of its description. Each character of a script without spaces is a word, too, for queries
// of a single one.
func weights(s *dragoman.ToolSpec) map[string]float64 {
	out := map[string]float64{}
	add := func(text string, weight float64, shortest int) {
		for _, w := range wordsOf(text) {
			if len(w) >= shortest {
				out[w] = weight
			}
		}
		for _, r := range text {
			if unspaced(r) {
				out[string(r)] = weight
			}
		}
	}
	add(s.Description+" "+s.NamespaceDescription, 1, 2)
	add(s.Name+" "+s.Namespace, 3, 1)
	return out
}

// wordsOf returns the distinct words of a text, without a plural "s". Text in a script that
// does not put spaces between words counts as pairs of characters.
func wordsOf(s string) []string {
	var out []string
	for _, w := range textkit.Words(s) {
		for w != "" {
			n := strings.IndexFunc(w, unspaced)
			switch {
			case n < 0:
				n = len(w)
				fallthrough
			case n > 0:
				out = append(out, cmp.Or(strings.TrimSuffix(w[:n], "s"), w[:n]))
			default:
				if n = strings.IndexFunc(w, func(r rune) bool { return !unspaced(r) }); n < 0 {
					n = len(w)
				}
				out = append(out, pairs(w[:n])...)
			}
			w = w[n:]
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unspaced reports whether a character belongs to a script that is written without spaces.
func unspaced(r rune) bool {
	const longVowel = 'ー' // of two scripts
	return r == longVowel || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// pairs returns the pairs of adjacent characters of a text, or the text if it has only one.
func pairs(s string) []string {
	rs := []rune(s)
	out := []string{string(rs[:min(2, len(rs))])}
	for i := 1; i+1 < len(rs); i++ {
		out = append(out, string(rs[i:i+2]))
	}
	return out
}
