package gen

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"pgregory.net/rapid"
)

// TextPart generates a text part.
func (o Options) TextPart() *rapid.Generator[*dragoman.Text] {
	return rapid.Custom(func(t *rapid.T) *dragoman.Text {
		p := &dragoman.Text{Text: o.words().Draw(t, "text"), Cache: o.cache(t), Extra: o.extra(t)}
		if !o.Tidy {
			p.Text = text(t, o, "text")
		}
		if o.native(t) {
			p.Signature = "c2ln"
		}
		return p
	})
}

// Reasoning generates a model's reasoning.
func (o Options) Reasoning() *rapid.Generator[*dragoman.Reasoning] {
	return rapid.Custom(func(t *rapid.T) *dragoman.Reasoning {
		p := &dragoman.Reasoning{Text: text(t, o, "thinking"), Extra: o.extra(t), Origin: o.origin(t)}
		p.Summary = list(t, o, rapid.SliceOfN(o.Text(), 0, 2).Draw(t, "summary"))
		if o.native(t) {
			p.Signature = "c2lnbmF0dXJl"
		}
		if o.native(t) {
			p.Encrypted, p.Redacted = "ZW5j", rapid.Bool().Draw(t, "redacted")
			p.ID = "rs_1"
		}
		if o.native(t) {
			p.Field = rapid.SampledFrom([]string{"reasoning", "reasoning_content"}).Draw(t, "field")
			p.Details = []json.RawMessage{Object().Draw(t, "detail"), nil, {}}
		}
		if !o.Tidy {
			p.Status = rapid.SampledFrom([]string{"", codes.StatusIncomplete}).Draw(t, "status")
		}
		return p
	})
}

// Media generates an image, audio or file.
func (o Options) Media() *rapid.Generator[*dragoman.Media] {
	return rapid.Custom(func(t *rapid.T) *dragoman.Media {
		p := &dragoman.Media{Media: codes.MediaImage, Cache: o.cache(t), Extra: o.extra(t)}
		switch rapid.IntRange(0, 4).Draw(t, "source") {
		case 0:
			p.MIME = "image/png"
			p.Base64 = base64.StdEncoding.EncodeToString(rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "bytes"))
			p.Detail = optional(t, "detail", "low", "high")
		case 1:
			p.URL = "https://example.com/a.png?x=1&y=<2>"
		case 2:
			p.Media, p.FileID = codes.MediaFile, "file-1"
		case 3:
			p.Media = rapid.SampledFrom([]string{codes.MediaImage, codes.MediaFile}).Draw(t, "kind")
			p.MIME = rapid.SampledFrom([]string{"", "image/jpg", "image/PNG", "image/png; q=1", "image/svg+xml", "application/zip", "application/pdf", "text/markdown"}).Draw(t, "mime")
			p.Base64 = rapid.SampledFrom([]string{"iVBORw0KGgo=", "JVBERi0xLjQ=", "UEsDBA==", "aGk="}).Draw(t, "file")
		default:
			p.Media, p.MIME, p.Text = codes.MediaFile, "text/plain", o.words().Draw(t, "document")
			p.Name, p.Title = optional(t, "name", "a.txt"), optional(t, "title", "A “title”")
		}
		return p
	})
}

// Opaque generates a native block that is not modeled.
func (o Options) Opaque() *rapid.Generator[*dragoman.Opaque] {
	return rapid.Custom(func(t *rapid.T) *dragoman.Opaque {
		typ := rapid.SampledFrom([]string{"web_search_call", "server_tool_use", "future_block"}).Draw(t, "native type")
		return &dragoman.Opaque{
			Dialect: o.dialect(t), Type: typ, JSON: json.RawMessage(fmt.Sprintf(`{"type":%q, "x":%s}`, typ, JSON().Draw(t, "x"))),
			CallID: optional(t, "call id", "srv_1"), Hosted: rapid.Bool().Draw(t, "hosted"),
		}
	})
}

// call draws a call of one of the tools, or of an undefined tool.
func (o Options) call(t *rapid.T, tools []dragoman.ToolSpec, id string) *dragoman.ToolCall {
	c := &dragoman.ToolCall{ID: id, Cache: o.cache(t), Extra: o.extra(t)}
	if client := clientTools(tools); len(client) > 0 {
		s := rapid.SampledFrom(client).Draw(t, "tool")
		c.Name, c.Namespace = s.Name, s.Namespace
		if s.Kind == codes.ToolFreeform {
			c.Payload = codes.PayloadText
		}
	} else {
		c.Name = o.Name().Draw(t, "unknown tool")
	}
	if c.Payload == codes.PayloadText {
		c.Arguments = text(t, o, "input")
	} else {
		c.Arguments = o.Arguments().Draw(t, "arguments")
		c.Problem = dragoman.CheckArguments(c.Arguments)
	}
	if !o.Tidy && seldom(t, "truncated") {
		c.Status = codes.StatusIncomplete
		c.Problem = &dragoman.CallProblem{Code: codes.ProblemTruncated, Message: "the output limit truncated the call", Offset: -1}
	}
	c.Synthetic = seldom(t, "synthetic")
	if o.native(t) {
		c.ItemID, c.Async = "fc_"+id, rapid.Bool().Draw(t, "async")
	}
	if o.native(t) {
		c.Signature, c.Caller = "c2ln", Object().Draw(t, "caller")
	}
	return c
}

func clientTools(tools []dragoman.ToolSpec) []dragoman.ToolSpec {
	var out []dragoman.ToolSpec
	for _, s := range tools {
		if s.Kind != codes.ToolHosted {
			out = append(out, s)
		}
	}
	return out
}

// result draws the result of a call.
func (o Options) result(t *rapid.T, c *dragoman.ToolCall) *dragoman.ToolResult {
	r := &dragoman.ToolResult{
		CallID: c.ID, Name: c.Name, Namespace: c.Namespace, Payload: c.Payload, Caller: c.Caller,
		Outcome:  rapid.SampledFrom([]string{codes.OutcomeUnknown, codes.OutcomeOK, codes.OutcomeError}).Draw(t, "outcome"),
		Display:  optional(t, "display", "3 °C <b>cold</b>"),
		Envelope: o.nativeObject(t),
		Cache:    o.cache(t),
		Extra:    o.extra(t),
	}
	if c.Problem != nil {
		r.Outcome = codes.OutcomeError
	}
	if o.native(t) {
		r.ItemID = "fco_1"
	}
	if !o.Tidy {
		r.Synthetic = seldom(t, "synthetic result")
		r.Status = rapid.SampledFrom([]string{"", "", codes.StatusInProgress}).Draw(t, "result status")
	}
	var content []dragoman.Part
	for range rapid.IntRange(0, 2).Draw(t, "contents") {
		switch rapid.IntRange(0, 3).Draw(t, "content") {
		case 0:
			content = append(content, o.Media().Draw(t, "media"))
		case 1:
			content = append(content, &dragoman.Data{JSON: JSON().Draw(t, "data")})
		default:
			content = append(content, o.TextPart().Draw(t, "text"))
		}
	}
	r.Content = list(t, o, content)
	return r
}

// Part generates any part.
func (o Options) Part() *rapid.Generator[dragoman.Part] {
	return rapid.Custom(func(t *rapid.T) dragoman.Part {
		last := 7
		if o.Plain {
			last = 6
		}
		switch rapid.IntRange(0, last).Draw(t, "part") {
		case 0:
			return o.TextPart().Draw(t, "text")
		case 1:
			return o.Reasoning().Draw(t, "reasoning")
		case 2:
			return o.Media().Draw(t, "media")
		case 3:
			return o.call(t, nil, o.id().Draw(t, "id"))
		case 4:
			return o.result(t, o.call(t, nil, o.id().Draw(t, "id")))
		case 5:
			return &dragoman.Refusal{Text: text(t, o, "refusal"), Extra: o.extra(t)}
		case 6:
			return &dragoman.Data{JSON: JSON().Draw(t, "data")}
		default:
			return o.Opaque().Draw(t, "opaque")
		}
	})
}
