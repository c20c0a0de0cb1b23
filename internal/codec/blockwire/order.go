package blockwire

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
)

// orderResults moves the results for the previous turn's calls to the front, as
// package turnrules describes. A result for none of these calls stays in place: no position
// would make APIs accept it, and what was sent before it must not change (decision 126).
// A native message that has a result for every call keeps its order.
func (p *Plan) orderResults(t *Turn, i int) {
	if !slices.ContainsFunc(t.Blocks, isResult) {
		return
	}
	calls := p.calls(i - 1)
	unseen := i == 0 && p.Threaded // the server has the calls
	stay := 0                      // number of blocks that keep their position
	if t.frame.raw != nil && !unseen && hasAllResults(t.Blocks[:len(t.Messages[0].Parts)], calls) {
		stay = len(t.Messages[0].Parts)
	}
	t.Blocks = p.oneResult(t.Blocks, stay)
	rest := t.Blocks[stay:]
	moved := turnrules.Sort(rest, func(b Block) int {
		res, ok := b.Part.(*dragoman.ToolResult)
		switch {
		case !ok:
			return calls.Rest()
		case unseen:
			return -1
		default:
			return calls.Of(res.CallID)
		}
	})
	if moved {
		p.rep.Add(dragoman.Moved, dragoman.Info, rest[0].At.String(), "the results of a turn written first, in the order of its calls")
	}
}

// calls ranks the calls of turn i by id, if it is a turn of the model.
func (p *Plan) calls(i int) turnrules.Ranks[string] {
	calls := turnrules.Ranks[string]{}
	if i < 0 || p.Turns[i].Role != p.Assistant {
		return calls
	}
	for _, b := range p.Turns[i].Blocks {
		if call, ok := b.Part.(*dragoman.ToolCall); ok {
			calls.Add(call.ID)
		}
	}
	return calls
}

func isResult(b Block) bool { return b.Is(codes.KindToolResult) }

// hasAllResults reports whether blocks contain a result for each of the calls.
func hasAllResults(blocks []Block, calls turnrules.Ranks[string]) bool {
	found := map[string]bool{}
	for _, b := range blocks {
		if res, ok := b.Part.(*dragoman.ToolResult); ok {
			if _, known := calls[res.CallID]; known {
				found[res.CallID] = true
			}
		}
	}
	return len(found) == len(calls)
}

// oneResult keeps one result for each call, at the position of the first. The first
// stay blocks are never removed.
func (p *Plan) oneResult(blocks []Block, stay int) []Block {
	place := map[string]int{}
	kept := blocks[:0]
	for i, b := range blocks {
		if res, ok := b.Part.(*dragoman.ToolResult); ok && res.CallID != "" {
			first, dup := place[res.CallID]
			if dup && i >= stay {
				p.replaceResult(&kept[first], b, res)
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

// replaceResult replaces the first result of a call with a later one, if the later one
// counts.
func (p *Plan) replaceResult(first *Block, b Block, res *dragoman.ToolResult) {
	if was, ok := first.Part.(*dragoman.ToolResult); ok && !turnrules.Replaces(was, res) {
		p.rep.Addf(dragoman.Dropped, dragoman.Info, b.At.String(), "placeholder for the result of call %q", res.CallID)
		return
	}
	p.rep.Addf(dragoman.Dropped, dragoman.Warn, first.At.String(), "call %q has a later result", res.CallID)
	if p.CachePoint != nil && b.Cache == nil { // the breakpoint after it stays in place
		b.Cache, b.Mark = first.Cache, first.Mark
	}
	*first = b
}

// CallsLast moves client calls to the end of an assistant turn, for an API on which the
// results must directly follow them (quirks B26, B27). Thinking between calls fixes the
// order: a turn with signatures is replayed unchanged (quirk D25).
func (p *Plan) CallsLast(t *Turn) {
	isCall := func(b Block) bool { return b.Is(codes.KindToolCall) }
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
		p.rep.Add(dragoman.Moved, dragoman.Info, t.Blocks[first].At.String(), "calls moved to the end of their turn")
	}
	t.Blocks = append(rest, calls...)
}
