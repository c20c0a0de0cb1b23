package ollama

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// generateCodec serves Ollama /api/generate with the codec of /api/chat: a prompt is a
// conversation of one message, and the field "response" replaces the message of a
// response. It overrides only the methods that a server calls.
type generateCodec struct{ Codec }

// Variant implements [wire.Variant]: upstreams are always called with /api/chat.
func (generateCodec) Variant() {}

// Wire returns the descriptor of /api/chat, with the empty requests of /api/generate.
func (generateCodec) Wire() *wire.Wire { return &describedGenerate }

var describedGenerate = describe(generateCodec{}.load, generateCodec{}.loaded)

// DecodeRequest implements [dialect.Codec].
func (c generateCodec) DecodeRequest(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	chat, losses, err := chatOfGenerate(body)
	if err != nil {
		return nil, losses, err
	}
	req, rep, err := c.Codec.DecodeRequest(chat, o)
	rep.Losses = append(losses.Losses, rep.Losses...)
	return req, rep, err
}

// chatOfGenerate converts a request of /api/generate to one of /api/chat. Fields that both APIs
// have keep their bytes.
func chatOfGenerate(body []byte) ([]byte, dragoman.Report, error) {
	var (
		rep                    dragoman.Report
		prompt, system, suffix string
		images                 []byte
		rest                   jsonwire.Writer
	)
	r := jsonwire.NewReader(body)
	if r.Kind() != '{' {
		return nil, rep, errors.New("the request body is not a JSON object")
	}
	rest.BeginObject()
	for key := range r.Object() {
		switch k := string(key); k {
		case "prompt":
			prompt = r.String()
		case "system":
			system = r.String()
		case "suffix":
			suffix = r.String()
		case "images":
			images = r.Raw()
		case "messages": // a field of the other request
			r.Skip()
			rep.Add(dragoman.Dropped, dragoman.Warn, "/messages", "/api/generate has no messages; use /api/chat")
		case "context":
			if raw := r.Raw(); len(bytes.Trim(raw, "[] \t\r\n")) > 0 && raw[0] == '[' {
				return nil, rep, errors.New("context: this server cannot use the tokens of an earlier response; send the conversation to /api/chat")
			}
		case "template", "raw":
			if raw := r.Raw(); string(raw) != `""` && string(raw) != "false" && string(raw) != "null" {
				rep.Add(dragoman.Dropped, dragoman.Warn, "/"+k, "the upstream applies its own template to the prompt")
			}
		default:
			raw := r.Raw()
			if k == "format" && string(raw) == `""` { // Python clients write this for no format
				continue
			}
			rest.QuotedKey(k)
			rest.Known(raw)
		}
	}
	if err := r.End(); err != nil {
		return nil, rep, fmt.Errorf("the request body is not valid JSON: %w", err)
	}
	if suffix != "" {
		return nil, rep, errors.New("suffix: the model does not support insert")
	}
	rest.Key("messages")
	rest.BeginArray()
	if system != "" {
		rest.BeginObject()
		rest.StringField("role", "system")
		rest.StringField("content", system)
		rest.EndObject()
	}
	if hasImages := len(bytes.Trim(images, "[] \t\r\n")) > 0 && string(images) != "null"; prompt != "" || hasImages {
		rest.BeginObject()
		rest.StringField("role", "user")
		rest.StringField("content", prompt)
		if hasImages {
			rest.RawField("images", images)
		}
		rest.EndObject()
	}
	rest.EndArray()
	rest.EndObject()
	return rest.Buf, rep, rest.Err()
}

// EncodeResponse implements [dialect.Codec].
func (c generateCodec) EncodeResponse(resp *dragoman.Response, o dialect.EncodeOptions) (dialect.Encoded, error) {
	enc, err := c.Codec.EncodeResponse(resp, o)
	if err == nil {
		enc.Body = generateLine(nil, enc.Body)
	}
	return enc, err
}

// NewStreamEncoder implements [dialect.Codec].
func (c generateCodec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	return &generateEncoder{StreamEncoder: c.Codec.NewStreamEncoder(o)}
}

// generateEncoder rewrites the lines of /api/chat.
type generateEncoder struct {
	dialect.StreamEncoder
	buf []byte
}

func (e *generateEncoder) Encode(dst []byte, ev dragoman.Event) (_ []byte, err error) {
	e.buf, err = e.StreamEncoder.Encode(e.buf, ev)
	return e.lines(dst), err
}

func (e *generateEncoder) Close(dst []byte) (_ []byte, err error) {
	e.buf, err = e.StreamEncoder.Close(e.buf)
	dst = e.lines(dst)
	if len(bytes.TrimSpace(e.buf)) > 0 { // a last line without a line break
		dst = append(generateLine(dst, e.buf), '\n')
	}
	e.buf = e.buf[:0]
	return dst, err
}

// lines converts the complete lines of the buffer.
func (e *generateEncoder) lines(dst []byte) []byte {
	rest := e.buf
	for {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		if !ok {
			break
		}
		if rest = after; len(bytes.TrimSpace(line)) > 0 {
			dst = append(generateLine(dst, line), '\n')
		}
	}
	e.buf = append(e.buf[:0], rest...)
	return dst
}

// generateLine appends an object of /api/chat as one of /api/generate. An error has the
// same form in both.
func generateLine(dst, line []byte) []byte {
	var w jsonwire.Writer
	r := jsonwire.NewReader(line)
	if r.Kind() != '{' {
		return append(dst, line...)
	}
	w.BeginObject()
	for key := range r.Object() {
		if string(key) != "message" || r.Kind() != '{' {
			w.QuotedKey(string(key))
			w.Known(r.Raw())
			continue
		}
		hasContent := false
		for key := range r.Object() {
			switch k := string(key); k {
			case "role":
				r.Skip()
			case "content":
				hasContent = true
				w.Key("response")
				w.Known(r.Raw())
			default:
				w.QuotedKey(k)
				w.Known(r.Raw())
			}
		}
		if !hasContent {
			w.StringField("response", "")
		}
	}
	w.EndObject()
	if r.Err() != nil {
		return append(dst, line...)
	}
	return append(dst, w.Buf...)
}

// load reports whether a request loads or unloads its model, which is a request without messages.
// reason is the done_reason of the response.
func (Codec) load(body []byte) (reason string, ok bool) { return loads(body, "messages") }

func (generateCodec) load(body []byte) (reason string, ok bool) {
	return loads(body, "images", "prompt")
}

// loads reports whether all the given fields of a request are empty.
func loads(body []byte, fields ...string) (reason string, ok bool) {
	reason, empty := "load", true
	r := jsonwire.NewReader(body)
	if r.Kind() != '{' {
		return "", false
	}
	for key := range r.Object() {
		switch k := string(key); {
		case k == "keep_alive":
			switch strings.Trim(string(r.Raw()), `"`) {
			case "0", "0s", "0m", "0h", "0.0":
				reason = "unload"
			}
		case k == "prompt" && slices.Contains(fields, k):
			empty = empty && r.String() == ""
		case slices.Contains(fields, k):
			raw := r.Raw()
			empty = empty && (len(bytes.Trim(raw, "[] \t\r\n")) == 0 || string(raw) == "null")
		default:
			r.Skip()
		}
	}
	return reason, empty && r.End() == nil
}

// loaded returns the response to a request that loads or unloads its model.
func (Codec) loaded(model, created, reason string) []byte {
	var w jsonwire.Writer
	w.BeginObject()
	w.StringField("model", model)
	w.StringField("created_at", created)
	w.Key("message")
	w.BeginObject()
	w.StringField("role", "assistant")
	w.StringField("content", "")
	w.EndObject()
	w.StringField("done_reason", reason)
	w.BoolField("done", true)
	w.EndObject()
	return w.Buf
}

func (c generateCodec) loaded(model, created, reason string) []byte {
	return generateLine(nil, c.Codec.loaded(model, created, reason))
}
