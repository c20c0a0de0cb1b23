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

// DecodeResponse implements [dialect.Codec]. The response aliases body, which
// must not change afterwards. On error it returns what was decoded so far.
func (c Codec) DecodeResponse(body []byte, o dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	a := newResponseDecoder(blockDecoder{Decoder: blockwire.NewDecoder(format, o)})
	return a.Decode(body, func(r *jsonwire.Reader) error {
		a.read(r)
		if err := r.End(); err != nil {
			return err
		}
		return a.finish()
	})
}

// responseDecoder decodes one response, from a body or from a stream.
type responseDecoder struct {
	blockwire.Response
	blocks   blockDecoder
	counters counters

	// message is the raw output.message, messages the number of such fields,
	// and end the offset at which the last one ends.
	message  []byte
	messages int
	end      int64
}

func newResponseDecoder(blocks blockDecoder) responseDecoder {
	return responseDecoder{Response: blockwire.NewResponse(blocks.Decoder), blocks: blocks}
}

var errNoOutput = errors.New("no output.message: is this a Converse response?")

// read reads a response except its message.
func (a *responseDecoder) read(r *jsonwire.Reader) {
	for key := range r.Object() {
		switch k := string(key); {
		case k == "output" && r.Kind() == '{':
			a.output(r)
		case k == "stopReason":
			a.SetStop(r.String())
		case k == "usage" && r.Kind() != 'n':
			a.counters.read(r, a.Keep, a.Decoder.Rep)
		case k == "__type":
			a.Failed = true
			a.extra("", key, r.Raw())
		default:
			a.sharedField(key, r.Raw())
		}
	}
	a.Decoder.DropCaseVariants(&a.Resp.Extra, "", "", []string{"output", "stopReason", "__type", "usage", "metrics", "serviceTier", "trace", "performanceConfig"})
	a.Decoder.DropCaseVariants(&a.Resp.Extra, "/output", "/output", []string{"message"})
}

func (a *responseDecoder) output(r *jsonwire.Reader) {
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

func (a *responseDecoder) extra(prefix string, key, raw []byte) {
	a.Keep.Field(&a.Resp.Extra, name, prefix, key, raw)
}

// sharedField reads a field that responses and streams share.
func (a *responseDecoder) sharedField(key, raw []byte) {
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

// stopSequence returns the stop sequence that matched, if the request asked the
// model for it.
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

// finish decodes the message and sets the stop and the usage of a complete
// response. An empty response must not pass as a valid one.
func (a *responseDecoder) finish() error {
	if len(a.message) == 0 || a.message[0] != '{' {
		_, hasMessage := extra.Get(a.Resp.Extra, name, "/message")
		a.Failed = a.Failed || hasMessage
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

// readMessage decodes the message. changed reports that the result no longer
// matches the original bytes.
func (a *responseDecoder) readMessage() (m dragoman.Message, changed bool, err error) {
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
				for range r.Array() { // reports the type error
				}
				continue
			}
			content = r.Raw()
			base = r.Offset() - int64(len(content))
		default:
			extra.Add(&m.Extra, name, "", key, r.Raw())
		}
	}
	d.DropCaseVariants(&m.Extra, "", "", []string{"role", "content"})
	if err := r.Err(); err != nil {
		return m, true, err
	}
	if content != nil {
		if m.Parts, err = a.blocks.content(content, true, d.Content, 0); err != nil {
			err = jsonwire.PlaceAt("/content", base, err)
		}
	}
	m.Parts, changed = d.SettleDuplicates(m.Parts)
	// A response may have these fields, a request may not.
	changed = d.DropAllUnsendable(m.Parts, d.Content) || changed
	switch {
	case contents > 1:
		a.Repeated(m.Parts, "content")
	case a.messages > 1:
		a.Repeated(m.Parts, "message")
	}
	return m, changed || content != nil && !bytes.HasPrefix(content, []byte("[")), err
}

func (a *responseDecoder) settle(calls []*dragoman.ToolCall) {
	a.Resp.Stop = a.Stop(true, calls)
	a.Resp.Usage = a.counters.usage()
}
