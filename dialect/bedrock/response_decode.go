package bedrock

import (
	"bytes"
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeResponse implements [dialect.Codec]. The response keeps slices of
// body, which must not change afterwards. What was decoded before an error is
// returned with it.
func (c Codec) DecodeResponse(body []byte, o dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	a := newAnswer(blockDecoder{Decoder: blockwire.NewDecoder(format, o)})
	return a.Decode(body, func(r *jsonwire.Reader) error {
		a.read(r)
		if err := r.End(); err != nil {
			return err
		}
		return a.finish()
	})
}

// answer is a response being read: the body of one, or what a stream says of
// it.
type answer struct {
	blockwire.Answer
	blocks   blockDecoder
	counters counters

	// message is output.message as it stands, messages how many there are, and
	// end where the last of them ends.
	message  []byte
	messages int
	end      int64
}

func newAnswer(blocks blockDecoder) answer {
	return answer{Answer: blockwire.NewAnswer(blocks.Decoder), blocks: blocks}
}

var errNoOutput = errors.New("no output.message: is this a Converse response?")

// read reads a response but for its message.
func (a *answer) read(r *jsonwire.Reader) {
	for key := range r.Object() {
		switch k := string(key); {
		case k == "output" && r.Kind() == '{':
			a.output(r)
		case k == "stopReason":
			a.Say(r.String())
		case k == "usage" && r.Kind() != 'n':
			a.counters.read(r, a.Keep, a.Decoder.Rep)
		case k == "__type":
			a.Failed = true
			a.extra("", key, r.Raw())
		default:
			a.member(key, r.Raw())
		}
	}
	a.Decoder.DropTwins(&a.Resp.Extra, "", "", []string{"output", "stopReason", "__type", "usage", "metrics", "serviceTier", "trace", "performanceConfig"})
	a.Decoder.DropTwins(&a.Resp.Extra, "/output", "/output", []string{"message"})
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
	a.Keep.Member(&a.Resp.Extra, name, prefix, key, raw)
}

// member takes a member that a response and a stream have in common.
func (a *answer) member(key, raw []byte) {
	switch string(key) {
	case "serviceTier":
		if tier := readTier(raw); tier != "" {
			a.Resp.ServiceTier = tier
			return
		}
	case "additionalModelResponseFields":
		if s := stopSequence(raw); s != "" {
			a.Sequence = s
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

// finish reads the message and settles the stop and the usage of a whole
// response. One that says nothing must not pass for one that has nothing to
// say.
func (a *answer) finish() error {
	if len(a.message) == 0 || a.message[0] != '{' {
		_, told := extra.Get(a.Resp.Extra, name, "/message")
		a.Failed = a.Failed || told
		if !a.Failed {
			return errNoOutput
		}
		a.settle(nil)
		return nil
	}
	m, changed, err := a.readMessage()
	if err != nil {
		err = jsonwire.PlaceAt("/output/message", a.end-int64(len(a.message)), err)
	}
	a.settle(m.ToolCalls())
	if changed {
		a.Message(m, nil)
	} else {
		a.Message(m, func() []byte { return a.message })
	}
	return err
}

// readMessage reads the message; changed says that it no longer reads as it
// came.
func (a *answer) readMessage() (m dragoman.Message, changed bool, err error) {
	d := a.Decoder
	m = dragoman.Message{Role: dragoman.RoleAssistant, Origin: d.Origin}
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
	d.DropTwins(&m.Extra, "", "", []string{"role", "content"})
	if err := r.Err(); err != nil {
		return m, true, err
	}
	if content != nil {
		if m.Parts, err = a.blocks.content(content, true, d.Content, 0); err != nil {
			err = jsonwire.PlaceAt("/content", base, err)
		}
	}
	m.Parts, changed = d.SettleDuplicates(m.Parts)
	// An answer may have them, a request may not.
	changed = d.AllWithoutStrays(m.Parts, d.Content) || changed
	switch {
	case contents > 1:
		a.Repeated(m.Parts, "content")
	case a.messages > 1:
		a.Repeated(m.Parts, "message")
	}
	return m, changed || content != nil && !bytes.HasPrefix(content, []byte("[")), err
}

func (a *answer) settle(calls []*dragoman.ToolCall) {
	a.Resp.Stop = a.Stop(true, calls)
	a.Resp.Usage = a.counters.usage()
}
