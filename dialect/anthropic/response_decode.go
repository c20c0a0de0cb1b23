package anthropic

import (
	"errors"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// DecodeResponse implements [dialect.Codec]. The response keeps slices of
// body, which must not change afterwards. What was decoded before an error is
// returned with it.
func (c Codec) DecodeResponse(body []byte, o dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	d := newBlockDecoder(c, o)
	a := answer{decoder: &d}
	a.resp.Origin = d.origin
	r, sure, err := wirekit.OpenResponse(name, body, o, literal, d.rep)
	if err != nil {
		return &a.resp, *d.rep, err
	}
	defer r.Return()
	d.ambiguous = !sure
	rewritten := d.reg.Rewritten()
	content := a.read(r)
	err = r.End()
	if err == nil {
		err = a.checkContent(content.Raw)
	}
	a.finish(content, true)
	if err != nil {
		return &a.resp, *d.rep, wirekit.DecodeError(name, "response", err)
	}
	if a.failed {
		a.resp.Error = Codec{}.DecodeError(0, nil, body)
		if len(a.resp.ToolCalls()) > 0 {
			// A client that overlooks the error would run the calls beside it.
			d.ambiguous, a.resp.Error.Native = true, nil
		}
	}
	if !o.NoNative && !d.ambiguous && d.reg.Rewritten() == rewritten {
		a.resp.Native = &dragoman.Sidecar{Dialect: name, Raw: body, Mirror: a.resp.Fingerprint()}
	}
	return &a.resp, *d.rep, nil
}

// answer is a message object being read: the body of a response, or what a
// stream says of it at its start and end.
type answer struct {
	decoder *blockDecoder
	keep    wirekit.Keeper
	resp    dragoman.Response

	word     string // stop_reason
	sequence string
	details  *dragoman.Native
	counters counters
	failed   bool // an error envelope instead of a message, or beside one
	// contents counts the members "content", contentEnd is where the last ends.
	contents   int
	contentEnd int64
}

var (
	errNoContent = errors.New("no content: is this an Anthropic message?")
	errContent   = errors.New("want a list of content blocks")
)

// checkContent refuses an answer that is no message: one that says nothing
// must not pass for one that has nothing to say.
func (a *answer) checkContent(content []byte) error {
	switch {
	case a.failed:
		return nil
	case len(content) == 0:
		return errNoContent
	}
	switch content[0] {
	case '[', '"', 'n':
		return nil
	default:
		return placeAt("/content", a.contentEnd-int64(len(content)), errContent)
	}
}

// read reads a message object and returns its content, unread.
func (a *answer) read(r *jsonwire.Reader) (content jsonwire.Value) {
	for key := range r.Object() {
		switch k := string(key); k {
		case "id":
			a.resp.ID = r.String()
		case "model":
			a.resp.Model = r.String()
		case "type":
			a.failed = wirekit.Text(r, "") == "error" || a.failed
		case "error":
			raw := r.Raw()
			a.failed = a.failed || string(raw) != "null"
			a.keep.Member(&a.resp.Extra, name, "", key, raw)
		case "role":
			r.Skip()
		case "content":
			content = r.Value()
			a.contents, a.contentEnd = a.contents+1, r.Offset()
		case "usage":
			a.counters.read(r, a.keep, a.decoder.rep)
		case "stop_reason", "stop_sequence", "stop_details":
			a.stop(r, k)
		default:
			a.keep.Member(&a.resp.Extra, name, "", key, r.Raw())
		}
	}
	if wirekit.DropTwins(&a.resp.Extra, "", answerMembers) {
		a.decoder.ambiguous = true
		a.decoder.rep.Add(dragoman.Dropped, dragoman.Warn, "", "a member that some readers would take for another; the native form is not kept")
	}
	a.resp.ServiceTier = a.counters.tier
	return content
}

// answerMembers say what an answer holds and runs, and whether it may.
var answerMembers = []string{"type", "role", "content", "stop_reason", "error", "id", "model", "stop_sequence", "stop_details", "usage"}

// stop reads one of the members that say why a message ended. Null says
// nothing and erases nothing.
func (a *answer) stop(r *jsonwire.Reader, key string) {
	if r.Kind() == 'n' {
		raw := r.Raw()
		if key == "stop_details" && a.details == nil {
			a.keep.Member(&a.resp.Extra, name, "", []byte(key), raw)
		}
		return
	}
	switch key {
	case "stop_reason":
		a.say(r.String())
	case "stop_sequence":
		a.sequence = r.String()
	case "stop_details":
		first := a.details == nil // a null may have been kept before
		var old []byte
		if !first {
			old = a.details.JSON
		}
		a.details = &dragoman.Native{Format: formatDetails, JSON: a.keep.Bytes(old, r.Raw())}
		if first && a.resp.Extra != nil {
			a.resp.Extra.Fields = slices.DeleteFunc(a.resp.Extra.Fields, func(f dragoman.Field) bool { return f.Path == "/stop_details" })
			if len(a.resp.Extra.Fields) == 0 {
				a.resp.Extra = nil
			}
		}
	}
}

// say takes a word for why the message ended. A word after which nothing runs
// sticks: no later one may set the calls free.
func (a *answer) say(word string) {
	if word == "" || word == a.word {
		return
	}
	if a.word != "" {
		kept, lost := word, a.word
		if a.sticks() {
			kept, lost = a.word, word
		}
		a.decoder.ambiguous = a.decoder.ambiguous || !stopOf(kept).Runs()
		a.decoder.lost.Addf(a.decoder.rep, dragoman.Dropped, dragoman.Warn, "/stop", "stop_reason %.40q beside %.40q", lost, kept)
		word = kept
	}
	a.word = word
}

// sticks reports whether a word was said after which nothing runs.
func (a *answer) sticks() bool {
	return a.word != "" && !stopOf(a.word).Runs()
}

// finish settles the content, the stop and the usage of a whole message.
func (a *answer) finish(content jsonwire.Value, terminal bool) {
	d := a.decoder
	parts, changed := d.settleDuplicates(d.content(content))
	if a.contents > 1 {
		d.ambiguous = true
		for _, p := range parts {
			if c, ok := p.(*dragoman.ToolCall); ok {
				c.Problem = wirekit.RepeatedMember("content")
			}
		}
	}
	var calls []*dragoman.ToolCall
	for _, p := range parts {
		if c, ok := p.(*dragoman.ToolCall); ok {
			calls = append(calls, c)
		}
	}
	a.resp.Stop = a.settledStop(terminal, calls)
	a.resp.Usage = a.counters.usage()
	if len(parts) == 0 {
		return
	}
	for i, p := range parts { // an answer may have them, a request may not
		changed = withoutStrays(p, extra.Elem("/content", i), d.rep) || changed
	}
	m := dragoman.Message{Role: dragoman.RoleAssistant, Parts: parts, Origin: d.origin}
	if !d.o.NoNative && !changed && !d.ambiguous && content.Raw[0] == '[' {
		// What goes back is the message a request holds, not the response.
		raw := make([]byte, 0, len(content.Raw)+32)
		raw = append(raw, `{"role":"assistant","content":`...)
		raw = append(append(raw, content.Raw...), '}')
		m.Native = &dragoman.Sidecar{Dialect: name, Raw: raw, Mirror: m.Fingerprint()}
	}
	a.resp.Output = []dragoman.Message{m}
}

func (a *answer) settledStop(terminal bool, calls []*dragoman.ToolCall) dragoman.Stop {
	word := a.word
	if a.failed {
		word = "error" // whatever it says: nothing runs beside an error
	}
	return dragoman.Stop{
		Reason: wirekit.SettleStop(a.decoder.reg, stopOf(word), terminal, calls),
		Native: a.word, Sequence: a.sequence, Details: a.details,
	}
}

// content reads the blocks of a response. Text instead of blocks is taken as
// one; anything else has none.
func (d *blockDecoder) content(content jsonwire.Value) []dragoman.Part {
	if len(content.Raw) == 0 {
		return nil
	}
	r := content.Reader()
	defer r.Return()
	switch r.Kind() {
	case '"':
		if s := r.String(); s != "" {
			return []dragoman.Part{&dragoman.Text{Text: s}}
		}
		return nil
	case '[':
		var parts []dragoman.Part
		for i := range r.Array() {
			block := r.Value()
			if r.Err() != nil {
				break
			}
			if string(block.Raw) != "null" {
				parts = append(parts, d.block(block, extra.Elem("/content", i), i))
			}
		}
		return parts
	default:
		return nil
	}
}
