package responsesapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// SummaryHead introduces the summary of a compacted conversation to the model.
const SummaryHead = "The conversation before this message was compacted. This is its summary:\n\n"

// isSummary reports whether a message is the summary of a compaction item.
func isSummary(m *dragoman.Message) bool {
	if len(m.Parts) == 0 {
		return false
	}
	t, ok := m.Parts[0].(*dragoman.Text)
	return ok && strings.HasPrefix(t.Text, SummaryHead)
}

// Transcript returns a conversation as text without reasoning, and the number of images and
// files that it leaves out.
func Transcript(req *dragoman.Request) (text string, media int) {
	var b strings.Builder
	write := func(who, what string) {
		if what = strings.TrimSpace(what); what != "" {
			fmt.Fprintf(&b, "[%s]\n%s\n\n", who, what)
		}
	}
	for _, p := range req.Instructions {
		if t, ok := p.(*dragoman.Text); ok {
			write("instructions", t.Text)
		}
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				write(string(m.Role), p.Text)
			case *dragoman.Refusal:
				write(string(m.Role), p.Text)
			case *dragoman.Data:
				write(string(m.Role), string(p.JSON))
			case *dragoman.ToolCall:
				write("assistant calls "+p.Name, p.Arguments)
			case *dragoman.ToolResult:
				for _, c := range p.Content {
					if _, ok := c.(*dragoman.Media); ok {
						media++
					}
				}
				write("result of "+p.CallID, p.Text())
			case *dragoman.Media:
				media++
			}
		}
	}
	return b.String(), media
}

// Compaction is the response to POST /v1/responses/compact.
type Compaction struct {
	// ID is appended to the prefixes of the ids.
	ID      string
	Created int64
	// Sealed is the content of the compaction item.
	Sealed string
	Usage  dragoman.Usage
}

// Encode returns the response object: the user messages, unchanged, and the compaction item.
// Ids are derived from seed.
func (c Compaction) Encode(req *dragoman.Request, model, seed string) ([]byte, error) {
	items, err := userItems(req, model, seed)
	if err != nil {
		return nil, err
	}
	usage, err := openairesponses.Codec{}.EncodeResponse(&dragoman.Response{Stop: dragoman.Stop{Reason: dragoman.StopEnd}, Usage: c.Usage}, dialect.EncodeOptions{Seed: seed, Model: model})
	if err != nil {
		return nil, err
	}
	var counted struct {
		Usage json.RawMessage `json:"usage"`
	}
	if err := json.Unmarshal(usage.Body, &counted); err != nil {
		return nil, err
	}
	var w jsonwire.Writer
	w.BeginObject()
	w.StringField("id", "resp_"+c.ID)
	w.StringField("object", "response.compaction")
	w.IntField("created_at", c.Created)
	w.Key("output")
	w.BeginArray()
	for _, item := range items {
		w.Raw(item)
	}
	w.BeginObject()
	w.StringField("type", "compaction")
	w.StringField("id", "cmp_"+c.ID)
	w.StringField("encrypted_content", c.Sealed)
	w.EndObject()
	w.EndArray()
	w.RawField("usage", counted.Usage)
	w.EndObject()
	return w.Buf, nil
}

// userItems returns the user's messages as items.
func userItems(req *dragoman.Request, model, seed string) (out []json.RawMessage, err error) {
	var messages []dragoman.Message
	for _, m := range req.Messages {
		if m.Role == dragoman.RoleUser && !isSummary(&m) && !slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindOpaque }) {
			messages = append(messages, m)
		}
	}
	if len(messages) == 0 {
		return nil, nil
	}
	enc, err := openairesponses.Codec{}.EncodeRequest(&dragoman.Request{Model: model, Messages: messages}, dialect.EncodeOptions{})
	if err != nil {
		return nil, err
	}
	for i, item := range ItemsOf(enc.Body, "input") {
		out = append(out, Identified(item, seed, i))
	}
	return out, nil
}
