package history

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// Texts that are added if a target requires text that the conversation lacks.
const (
	openingText  = "(conversation continues)"
	continueText = "(continue)"
	bridgeText   = "Done."
	fileNote     = "(see the attached file)"
	mediaNote    = "(see the attachment below)"
)

// shape meets the requirements of a target for the list as a whole. Each has its own
// limit or capability.
func (n *normalizer) shape() {
	caps := n.target.Caps
	if n.limits.TextWithFiles {
		n.labelFiles()
	}
	if caps.SplitCalls {
		n.splitCalls()
	}
	if caps.AssistantAfterTools {
		n.bridgeTools()
	}
	if n.limits.UserFirst {
		n.ensureUserFirst()
	}
	if caps.NoPrefill {
		n.ensureUserLast()
	}
	if caps.Alternate {
		n.joinRoles()
	}
}

// relist replaces the list with the messages that f writes for each message.
func (n *normalizer) relist(f func(i int, d draft, put func(draft))) {
	out := make([]draft, 0, len(n.ms))
	for i := range n.ms {
		f(i, n.ms[i], func(d draft) { out = append(out, d) })
	}
	n.moved = n.moved || len(out) != len(n.ms)
	n.ms = out
}

// labelFiles adds a text to messages that contain only files (quirk D38).
func (n *normalizer) labelFiles() {
	for i := range n.ms {
		d := &n.ms[i]
		file := func(p dragoman.Part) bool {
			m, ok := p.(*dragoman.Media)
			return ok && m.Media == codes.MediaFile
		}
		text := func(p dragoman.Part) bool { return p.Kind() == codes.KindText && !blank(p) }
		if d.assistant() || d.system() || !slices.ContainsFunc(d.Parts, file) || slices.ContainsFunc(d.Parts, text) {
			continue
		}
		n.rep.Addf(dragoman.Synthesized, dragoman.Info, d.path(), "the API requires text in a message with a file; %q added", fileNote)
		d.append(&dragoman.Text{Text: fileNote})
	}
}

// append adds a part at the end.
func (d *draft) append(p dragoman.Part) {
	at := make([]int, len(d.Parts), len(d.Parts)+1)
	for j := range at {
		at[j] = d.place(j)
	}
	d.touch()
	d.Parts = append(slices.Clip(d.Parts), p)
	d.at = append(at, max(0, len(at)-1))
}

// splitCalls gives each call of a turn its own message, directly followed by its result
// (quirk D5). The other content of the turn stays with the first.
func (n *normalizer) splitCalls() {
	calls := 0 // in the current run of assistant messages
	results := map[string]draft{}
	take := func(i int) { // collect the results that follow the run
		clear(results)
		for i < len(n.ms) && n.ms[i].assistant() {
			i++
		}
		for ; i < len(n.ms) && n.ms[i].hasResults(); i++ {
			for j, p := range n.ms[i].Parts {
				if res, ok := p.(*dragoman.ToolResult); ok {
					results[res.CallID] = n.ms[i].take(dragoman.RoleTool, []int{j})
				}
			}
		}
	}
	n.relist(func(i int, d draft, put func(draft)) {
		if !d.assistant() {
			if _, rest := d.results(); calls < 2 || !d.hasResults() {
				put(d)
			} else if len(rest) > 0 {
				put(d.take(dragoman.RoleUser, rest))
			}
			return
		}
		if i == 0 || !n.ms[i-1].assistant() {
			calls = 0
			for k := i; k < len(n.ms) && n.ms[k].assistant(); k++ {
				calls += len(n.ms[k].clientCalls())
			}
			if calls > 1 {
				n.rep.Addf(dragoman.Moved, dragoman.Info, d.path(), "a turn with %d calls written call by call", calls)
				take(i)
			}
		}
		if calls < 2 {
			put(d)
			return
		}
		if len(d.clientCalls()) == 0 {
			n.writeSplitTurn(d, put)
			return
		}
		start := 0
		for _, j := range d.clientCalls() {
			which := make([]int, 0, j+1-start)
			for k := start; k <= j; k++ {
				which = append(which, k)
			}
			start = j + 1
			n.writeSplitTurn(d.take(dragoman.RoleAssistant, which), put)
			if res, ok := results[d.Parts[j].(*dragoman.ToolCall).ID]; ok {
				put(res)
			}
		}
		if start < len(d.Parts) { // content after the last call
			which := make([]int, 0, len(d.Parts)-start)
			for k := start; k < len(d.Parts); k++ {
				which = append(which, k)
			}
			n.writeSplitTurn(d.take(dragoman.RoleAssistant, which), put)
		}
	})
}

// writeSplitTurn writes a part of a turn that is now a turn of its own, unless it is
// empty.
func (n *normalizer) writeSplitTurn(d draft, put func(draft)) {
	thinks := slices.ContainsFunc(d.Parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindReasoning })
	hasContent := slices.ContainsFunc(d.Parts, func(p dragoman.Part) bool { return p.Kind() != codes.KindReasoning && !blank(p) })
	switch {
	case thinks && !hasContent:
		n.rep.Add(dragoman.Dropped, dragoman.Warn, d.path(), "reasoning without content after it")
		return
	case n.limits.NoBlankText && !thinks:
		n.dropBlankText(&d)
	}
	if len(d.Parts) > 0 || !n.limits.NoBlankText {
		put(d)
	}
}

func (d *draft) clientCalls() []int {
	var calls []int
	for j, p := range d.Parts {
		if c, ok := p.(*dragoman.ToolCall); ok && !c.Hosted {
			calls = append(calls, j)
		}
	}
	return calls
}

// bridgeTools adds an assistant message between results and a following user message
// (quirk D19). Media that results cannot carry follows the added message.
func (n *normalizer) bridgeTools() {
	after := false // the previous message has results
	var media []draft
	write := func(put func(draft), d draft) {
		if after {
			n.rep.Addf(dragoman.Synthesized, dragoman.Warn, d.path(), "the API requires an assistant message after tool results; %q added", bridgeText)
			put(synthesized(dragoman.RoleAssistant, &dragoman.Text{Text: bridgeText}))
		}
		after = false
		put(d)
	}
	flush := func(put func(draft)) {
		for _, d := range media {
			write(put, d)
		}
		media = nil
	}
	n.relist(func(i int, d draft, put func(draft)) {
		if !d.hasResults() {
			if len(media) > 0 {
				flush(put)
			}
			if d.assistant() || d.system() {
				after = false
				put(d)
			} else {
				write(put, d)
			}
			return
		}
		results, rest := d.results()
		only := d
		if len(rest) > 0 {
			only = d.take(dragoman.RoleTool, results)
			only.clearFields()
		}
		media = append(media, n.extractMedia(&only)...)
		put(only)
		after = true
		if len(rest) > 0 {
			flush(put)
			write(put, d.take(dragoman.RoleUser, rest))
		}
	})
	flush(func(d draft) { n.ms = append(n.ms, d) })
}

// extractMedia removes the media from results that cannot carry any, and returns user
// messages with it.
func (n *normalizer) extractMedia(d *draft) []draft {
	if n.limits.ResultMedia {
		return nil
	}
	var out []draft
	d.edit(func(j int, p dragoman.Part) dragoman.Part {
		res, ok := p.(*dragoman.ToolResult)
		if !ok || !slices.ContainsFunc(res.Content, isMedia) {
			return p
		}
		n.rep.Add(dragoman.Moved, dragoman.Warn, d.part(j), "media of a result moved to a user message after the results")
		attached := synthesized(dragoman.RoleUser, &dragoman.Text{Text: "Attached to the result of call " + res.CallID + ":"})
		bare := *res
		bare.Content = nil
		for _, c := range res.Content {
			if isMedia(c) {
				attached.Parts = append(attached.Parts, c)
			} else {
				bare.Content = append(bare.Content, c)
			}
		}
		bare.Content = append(bare.Content, &dragoman.Text{Text: mediaNote})
		out = append(out, attached)
		return &bare
	})
	return out
}

func isMedia(p dragoman.Part) bool { return p.Kind() == codes.KindMedia }

// ensureUserFirst adds a user message at the start (quirks D17, D38). It does nothing for
// a conversation that the server stores or compacted, or that a client sent in
// the target's own dialect.
func (n *normalizer) ensureUserFirst() {
	first := 0
	for first < len(n.ms) && n.ms[first].system() {
		first++
	}
	if first < len(n.ms) {
		d := &n.ms[first]
		known := n.req.Native != nil && n.req.Native.Dialect == n.limits.Dialect ||
			len(d.Parts) > 0 && d.Parts[0].Kind() == codes.KindOpaque
		if !d.assistant() || known {
			return
		}
	} else if first == 0 && len(n.req.Instructions) == 0 {
		return // the request has no content; the encoder refuses it
	}
	if n.stored {
		return
	}
	n.rep.Add(dragoman.Synthesized, dragoman.Warn, "/messages", "the API requires a user message first; one is added")
	n.ms = slices.Insert(n.ms, first, synthesized(dragoman.RoleUser, &dragoman.Text{Text: openingText}))
	n.moved = true
}

// ensureUserLast adds a user message at the end if the target refuses a final assistant message.
func (n *normalizer) ensureUserLast() {
	last := len(n.ms) - 1
	for last >= 0 && n.ms[last].system() {
		last--
	}
	if last < 0 || !n.ms[last].assistant() {
		return
	}
	if parts := n.ms[last].Parts; len(parts) > 0 && continues(parts[len(parts)-1]) {
		return
	}
	n.rep.Addf(dragoman.Synthesized, dragoman.Warn, n.ms[last].path(), "the model does not continue assistant text; user message %q added after it", continueText)
	n.ms = append(n.ms, synthesized(dragoman.RoleUser, &dragoman.Text{Text: continueText}))
	n.moved = true
}

// continues reports whether a part is a call or a result of a tool that the provider
// runs. The provider continues a turn that ends with one, and refuses text after an
// open call (quirk I15).
func continues(p dragoman.Part) bool {
	o, ok := p.(*dragoman.Opaque)
	return ok && o.Hosted && o.CallID != "" || isHosted(p)
}

// joinRoles merges consecutive messages of one role (quirk D18).
func (n *normalizer) joinRoles() {
	n.relist(func(_ int, d draft, put func(draft)) {
		results, rest := d.results()
		if len(results) == 0 || len(rest) == 0 {
			put(d)
			return
		}
		n.rep.Add(dragoman.Moved, dragoman.Info, d.part(rest[0]), "text next to results written as a separate message")
		only := d.take(dragoman.RoleTool, results)
		only.clearFields()
		put(only)
		put(d.take(dragoman.RoleUser, rest))
	})
	out := make([]draft, 0, len(n.ms))
	joins := false  // whether the next message may be merged into the last
	hosted := false // whether the last message has a hosted call
	for i := range n.ms {
		d := n.ms[i]
		words := (d.assistant() || d.Role == dragoman.RoleUser) && !d.hasResults()
		hosts := slices.ContainsFunc(d.Parts, isHosted)
		last := len(out) - 1
		// A call that only one origin understands must keep that origin.
		if !joins || !words || out[last].Role != d.Role || (hosted || hosts) && !sameOrigin(&out[last], &d) {
			out = append(out, d)
			joins, hosted = words, hosts
			continue
		}
		n.rep.Add(dragoman.Moved, dragoman.Info, d.path(), "merged into the previous message, which has the same role")
		n.absorb(&out[last], &d)
		hosted = hosted || hosts
	}
	n.moved = n.moved || len(out) != len(n.ms)
	n.ms = out
}

func isHosted(p dragoman.Part) bool {
	c, ok := p.(*dragoman.ToolCall)
	return ok && c.Hosted
}

// absorb adds the parts of another message. Merging two origins removes both, so
// state bound to an origin is dropped, except reasoning, which carries its own origin.
func (n *normalizer) absorb(d, o *draft) {
	if !sameOrigin(d, o) {
		n.unbind(d)
		n.unbind(o)
	}
	if !d.joined {
		d.touch()
		d.joined, d.at = true, make([]int, len(d.Parts)) // no longer from one message
		d.Parts = slices.Clone(d.Parts)
	}
	d.Parts = append(d.Parts, o.Parts...)
	d.at = append(d.at, make([]int, len(o.Parts))...)
	if o.Cache != nil {
		d.Cache = o.Cache
	}
	if d.Name != o.Name {
		d.Name = ""
	}
}

func sameOrigin(d, o *draft) bool {
	return d.Origin == o.Origin || d.Origin != nil && o.Origin != nil && *d.Origin == *o.Origin
}

// unbind makes a message independent of its origin.
func (n *normalizer) unbind(d *draft) {
	origin := d.Origin
	if origin == nil {
		return // it has no bound state
	}
	d.edit(func(j int, p dragoman.Part) dragoman.Part {
		switch p := p.(type) {
		case *dragoman.Reasoning:
			if p.Origin == nil {
				r := *p
				r.Origin = origin
				return &r
			}
		case *dragoman.Text:
			if p.Signature != "" {
				n.rep.Add(dragoman.Dropped, dragoman.Warn, d.part(j)+"/signature", "the text is merged with text of another model")
				t := *p
				t.Signature = ""
				if n.limits.NoBlankText && blank(&t) {
					return nil // it only carried the signature
				}
				return &t
			}
		case *dragoman.ToolCall:
			if dummy := n.limits.DummySignature; p.Signature != "" && p.Signature != dummy {
				n.rep.Add(dragoman.Dropped, dragoman.Warn, d.part(j)+"/signature", "the call is merged with calls of another model")
				c := *p
				c.Signature = dummy
				return &c
			}
		}
		return p
	})
	d.touch()
	d.Origin = nil
	d.edit(func(j int, p dragoman.Part) dragoman.Part {
		if m, ok := p.(*dragoman.Media); ok {
			return n.media(d, j, m)
		}
		return p
	})
}
