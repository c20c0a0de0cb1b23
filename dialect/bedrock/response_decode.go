package bedrock

import (
	"bytes"
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
	a.read(r)
	if err = r.End(); err == nil {
		err = a.finish()
	}
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

// answer is a response being read: the body of one, or what a stream says of
// it.
type answer struct {
	decoder *blockDecoder
	keep    wirekit.Keeper
	resp    dragoman.Response

	word     string // stopReason
	sequence string
	counters counters
	failed   bool // an error envelope instead of a response, or beside one

	// message is output.message as it stands, messages how many there are, and
	// end where the last of them ends.
	message  []byte
	messages int
	end      int64
}

var errNoOutput = errors.New("no output.message: is this a Converse response?")

// read reads a response but for its message.
func (a *answer) read(r *jsonwire.Reader) {
	for key := range r.Object() {
		switch k := string(key); {
		case k == "output" && r.Kind() == '{':
			a.output(r)
		case k == "stopReason":
			a.say(r.String())
		case k == "usage" && r.Kind() != 'n':
			a.counters.read(r, a.keep, a.decoder.rep)
		case k == "__type":
			a.failed = true
			a.extra("", key, r.Raw())
		default:
			a.member(key, r.Raw())
		}
	}
	a.dropTwins(&a.resp.Extra, "", "output", "stopReason", "__type", "usage", "metrics", "serviceTier", "trace", "performanceConfig")
	a.dropTwins(&a.resp.Extra, "/output", "message")
}

// dropTwins leaves out members that some readers would take for others.
func (a *answer) dropTwins(e **dragoman.Extra, prefix string, known ...string) {
	if wirekit.DropTwins(e, prefix, known) {
		a.decoder.ambiguous = true
		a.decoder.rep.Add(dragoman.Dropped, dragoman.Warn, prefix, "a member that some readers would take for another; the native form is not kept")
	}
}

func (a *answer) output(r *jsonwire.Reader) {
	for key := range r.Object() {
		if string(key) != "message" {
			a.extra("/output", key, r.Raw())
			continue
		}
		a.message = r.Raw()
		a.messages++
		a.end = r.Offset()
	}
}

func (a *answer) extra(prefix string, key, raw []byte) {
	a.keep.Member(&a.resp.Extra, name, prefix, key, raw)
}

// member takes a member that a response and a stream have in common.
func (a *answer) member(key, raw []byte) {
	switch string(key) {
	case "serviceTier":
		if tier := readTier(raw); tier != "" {
			a.resp.ServiceTier = tier
			return
		}
	case "additionalModelResponseFields":
		if s := stopSequence(raw); s != "" {
			a.sequence = s
		}
	}
	a.extra("", key, raw)
}

// stopSequence finds the stop sequence that was written, where the request
// asked the model for it.
func stopSequence(raw []byte) string {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return ""
	}
	sequence := ""
	for key := range r.Object() {
		if string(key) == "stop_sequence" && r.Kind() == '"' {
			sequence = r.String()
		} else {
			r.Skip()
		}
	}
	return sequence
}

// say takes a word for why the response ended. A word after which nothing runs
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
		a.decoder.lost.Addf(a.decoder.rep, dragoman.Dropped, dragoman.Warn, "/stopReason", "stopReason %.40q beside %.40q", lost, kept)
		word = kept
	}
	a.word = word
}

// sticks reports whether a word was said after which nothing runs.
func (a *answer) sticks() bool {
	return a.word != "" && !stopOf(a.word).Runs()
}

// finish reads the message and settles the stop and the usage of a whole
// response. One that says nothing must not pass for one that has nothing to
// say.
func (a *answer) finish() error {
	if len(a.message) == 0 || a.message[0] != '{' {
		_, told := extra.Get(a.resp.Extra, name, "/message")
		a.failed = a.failed || told
		if !a.failed {
			return errNoOutput
		}
		a.settle(nil)
		return nil
	}
	m, changed, err := a.readMessage()
	if err != nil {
		err = placeAt("/output/message", a.end-int64(len(a.message)), err)
	}
	a.settle(m.ToolCalls())
	d := a.decoder
	if len(m.Parts) == 0 {
		return err
	}
	if !d.o.NoNative && !changed && !d.ambiguous {
		m.Native = &dragoman.Sidecar{Dialect: name, Raw: a.message, Mirror: m.Fingerprint()}
	}
	a.resp.Output = []dragoman.Message{m}
	return err
}

// readMessage reads the message; changed says that it no longer reads as it
// came.
func (a *answer) readMessage() (m dragoman.Message, changed bool, err error) {
	d := a.decoder
	m = dragoman.Message{Role: dragoman.RoleAssistant, Origin: d.origin}
	r := jsonwire.NewReader(a.message)
	var content []byte
	var base int64
	contents := 0
	for key := range r.Object() {
		switch string(key) {
		case "role":
			r.Skip()
		case "content":
			contents++
			if k := r.Kind(); k != '[' && k != '"' && k != 'n' {
				for range r.Array() { // says what is wrong
				}
				continue
			}
			content = r.Raw()
			base = r.Offset() - int64(len(content))
		default:
			extra.Add(&m.Extra, name, "", key, r.Raw())
		}
	}
	a.dropTwins(&m.Extra, "", "role", "content")
	if err := r.Err(); err != nil {
		return m, true, err
	}
	if content != nil {
		if m.Parts, err = d.content(content, true, "/output/message/content", 0); err != nil {
			err = placeAt("/content", base, err)
		}
	}
	m.Parts, changed = d.settleDuplicates(m.Parts)
	// An answer may have them, a request may not.
	changed = settleStrays(m.Parts, "/output/message/content", d.rep) || changed
	repeated := ""
	switch {
	case contents > 1:
		repeated = "content"
	case a.messages > 1:
		repeated = "message"
	}
	if repeated != "" {
		d.ambiguous = true
		for _, c := range m.ToolCalls() {
			c.Problem = wirekit.RepeatedMember(repeated)
		}
	}
	return m, changed || content != nil && !bytes.HasPrefix(content, []byte("[")), err
}

func (a *answer) settle(calls []*dragoman.ToolCall) {
	a.resp.Stop = a.settledStop(true, calls)
	a.resp.Usage = a.counters.usage()
}

func (a *answer) settledStop(terminal bool, calls []*dragoman.ToolCall) dragoman.Stop {
	word := a.word
	if a.failed {
		word = "error" // whatever it says: nothing runs beside an error
	}
	// A client that is passed the bytes would run what the request did not allow.
	a.decoder.ambiguous = slices.ContainsFunc(calls, a.decoder.reg.Forbid) || a.decoder.ambiguous
	reason := wirekit.SettleStop(a.decoder.reg, stopOf(word), terminal, calls)
	return dragoman.Stop{Reason: reason, Native: a.word, Sequence: a.sequence}
}
