package blockwire

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/resultorder"
)

// orderResults puts the results that answer the turn before first, as [resultorder] says.
// A result that answers none of its calls stays where it is: APIs take it nowhere, and what
// was sent before it must not change (decision 6). Nor does a message that came with
// all the answers there are, in whatever order it has them.
func (p *Plan) orderResults(t *Turn, i int) {
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
	rest := t.Blocks[stay:]
	moved := resultorder.Sort(rest, func(b Block) int {
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

// calls ranks the calls of turn i, if that is the model's, by id.
func (p *Plan) calls(i int) resultorder.Ranks[string] {
	calls := resultorder.Ranks[string]{}
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

// answers reports whether blocks hold a result for each of the calls.
func answers(blocks []Block, calls resultorder.Ranks[string]) bool {
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

// oneResult leaves one result for each call, in the place of the first. Of the blocks that
// stay, the first ones, none is taken out.
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

// replaceResult puts a further result of a call in the place of the first, if it counts.
func (p *Plan) replaceResult(first *Block, b Block, res *dragoman.ToolResult) {
	if was, ok := first.Part.(*dragoman.ToolResult); ok && !resultorder.Replaces(was, res) {
		p.rep.Addf(dragoman.Dropped, dragoman.Info, b.At.String(), "what stood in for the result of call %q", res.CallID)
		return
	}
	p.rep.Addf(dragoman.Dropped, dragoman.Warn, first.At.String(), "call %q has a later result", res.CallID)
	if p.CachePoint != nil && b.Cache == nil { // the breakpoint behind it stays where it was
		b.Cache, b.Mark = first.Cache, first.Mark
	}
	*first = b
}

// CallsLast puts client calls behind everything else of an assistant turn, for
// an API on which a result must follow them (quirks B26, B27). Thinking between
// calls fixes the order: a turn with signatures is replayed as it was (quirk
// D25).
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
		p.rep.Add(dragoman.Moved, dragoman.Info, t.Blocks[first].At.String(), "calls written behind the rest of their turn")
	}
	t.Blocks = append(rest, calls...)
}
