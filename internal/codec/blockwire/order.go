package blockwire

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// resultsFirst puts the results that answer the turn before first, in the order
// of its calls, one for each call (quirks D1, D2, D3, D4, D6). A result that
// answers none of them stays where it is: APIs take it nowhere, and what was
// sent before it must not change (decision 6). Nor does a message that came with
// all the answers there are, in whatever order it has them.
func (p *Plan) resultsFirst(t *Turn, i int) {
	if !slices.ContainsFunc(t.Blocks, isResult) {
		return
	}
	calls := p.calls(i - 1)
	unseen := i == 0 && p.Threaded // the calls are with the server
	stay := 0                      // how many blocks stay as they came
	if t.frame.raw != nil && !unseen && answers(t.Blocks[:len(t.Messages[0].Parts)], calls) {
		stay = len(t.Messages[0].Parts)
	}
	t.Blocks = p.oneResult(t.Blocks, stay)
	rank := func(b Block) int {
		if res, ok := b.Part.(*dragoman.ToolResult); ok {
			if n, ok := calls[res.CallID]; ok || unseen {
				return n
			}
		}
		return len(calls) + 1
	}
	byCall := func(a, b Block) int { return rank(a) - rank(b) }
	if rest := t.Blocks[stay:]; !slices.IsSortedFunc(rest, byCall) {
		slices.SortStableFunc(rest, byCall)
		p.rep.Add(dragoman.Moved, dragoman.Info, rest[0].At.String(), "the results of a turn written first, in the order of its calls")
	}
}

// calls numbers the calls of turn i, if that is the model's, by id.
func (p *Plan) calls(i int) map[string]int {
	calls := map[string]int{}
	if i < 0 || p.Turns[i].Role != p.Assistant {
		return calls
	}
	for _, b := range p.Turns[i].Blocks {
		if call, ok := b.Part.(*dragoman.ToolCall); ok {
			if _, twice := calls[call.ID]; !twice {
				calls[call.ID] = len(calls)
			}
		}
	}
	return calls
}

func isResult(b Block) bool { return b.Is(dragoman.KindToolResult) }

// answers reports whether blocks hold a result for each of the calls.
func answers(blocks []Block, calls map[string]int) bool {
	found := map[string]bool{}
	for _, b := range blocks {
		if res, ok := b.Part.(*dragoman.ToolResult); ok {
			if _, asked := calls[res.CallID]; asked {
				found[res.CallID] = true
			}
		}
	}
	return len(found) == len(calls)
}

// oneResult leaves one result for each call: the last, in the place of the
// first. Of the blocks that stay, the first ones, none is taken out.
func (p *Plan) oneResult(blocks []Block, stay int) []Block {
	place := map[string]int{}
	kept := blocks[:0]
	for i, b := range blocks {
		if res, ok := b.Part.(*dragoman.ToolResult); ok && res.CallID != "" {
			first, dup := place[res.CallID]
			if dup && i >= stay {
				p.rep.Addf(dragoman.Dropped, dragoman.Warn, kept[first].At.String(), "call %q has a later result", res.CallID)
				if p.CachePoint != nil && b.Cache == nil { // the breakpoint behind it stays where it was
					b.Cache, b.Mark = kept[first].Cache, kept[first].Mark
				}
				kept[first] = b
				continue
			}
			if !dup {
				place[res.CallID] = len(kept)
			}
		}
		kept = append(kept, b)
	}
	return kept
}

// CallsLast puts client calls behind everything else of an assistant turn, for
// an API on which a result must follow them (quirks B26, B27). Thinking between
// calls fixes the order: a turn with signatures is replayed as it was (quirk
// D25).
func (p *Plan) CallsLast(t *Turn) {
	isCall := func(b Block) bool { return b.Is(dragoman.KindToolCall) }
	first := slices.IndexFunc(t.Blocks, isCall)
	if first < 0 || slices.ContainsFunc(t.Blocks[first:], isThinking) {
		return
	}
	var calls, rest []Block
	for _, b := range t.Blocks {
		if isCall(b) {
			calls = append(calls, b)
		} else {
			rest = append(rest, b)
		}
	}
	if len(rest) > first {
		p.rep.Add(dragoman.Moved, dragoman.Info, t.Blocks[first].At.String(), "calls written behind the rest of their turn")
	}
	t.Blocks = append(rest, calls...)
}
