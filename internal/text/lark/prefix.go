package lark

import (
	"regexp/syntax"
	"unicode/utf8"
)

// prefixes returns the positions where an expression that begins at from may end,
// including from itself, and the number of steps needed. It stops when the steps exceed
// the budget.
func prefixes(prog *syntax.Prog, text string, from, budget int) (ends []int, steps int) {
	var now, next threads
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	if from == 0 {
		before = -1
	}
	now.reset(len(prog.Inst))
	next.reset(len(prog.Inst))
	for at := from; ; {
		r, width := utf8.DecodeRuneInString(text[at:])
		if width == 0 {
			r = -1
		}
		if at == from {
			now.follow(prog, uint32(prog.Start), syntax.EmptyOpContext(before, r))
		}
		if now.matched {
			ends = append(ends, at)
		}
		if steps++; width == 0 || len(now.list) == 0 || steps > budget {
			return ends, steps
		}
		after, w := utf8.DecodeRuneInString(text[at+width:])
		if w == 0 {
			after = -1
		}
		flags := syntax.EmptyOpContext(r, after)
		next.reset(len(prog.Inst))
		for _, pc := range now.list {
			steps++
			if in := &prog.Inst[pc]; in.MatchRune(r) {
				next.follow(prog, in.Out, flags)
			}
		}
		now, next = next, now
		at += width
	}
}

// threads are the instructions at which a match may be.
type threads struct {
	list    []uint32
	seen    []bool
	matched bool
}

func (t *threads) reset(n int) {
	if len(t.seen) != n {
		t.seen = make([]bool, n)
	}
	clear(t.seen)
	t.list, t.matched = t.list[:0], false
}

// follow adds an instruction and those that are reachable without a rune.
func (t *threads) follow(prog *syntax.Prog, pc uint32, flags syntax.EmptyOp) {
	if t.seen[pc] {
		return
	}
	t.seen[pc] = true
	switch in := &prog.Inst[pc]; in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		t.follow(prog, in.Out, flags)
		t.follow(prog, in.Arg, flags)
	case syntax.InstCapture, syntax.InstNop:
		t.follow(prog, in.Out, flags)
	case syntax.InstEmptyWidth:
		if syntax.EmptyOp(in.Arg)&^flags == 0 {
			t.follow(prog, in.Out, flags)
		}
	case syntax.InstMatch:
		t.matched = true
	case syntax.InstFail:
	default:
		t.list = append(t.list, pc)
	}
}
