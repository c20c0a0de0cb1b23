package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// cure is a refusal that goes away with the reasoning that earlier turns carry:
// a signature or an encryption that another account, region or model made
// (quirks D23, D30).
type cure struct {
	dialects []dragoman.Dialect
	// code is the error's code, or words all stand in its message.
	code  string
	words []string
}

// Chat is in every line: gateways pass on what the API behind them says.
var cures = [...]cure{
	{dialects: []dragoman.Dialect{dragoman.Anthropic, dragoman.Bedrock, dragoman.OpenAIChat}, words: []string{"invalid", "signature", "thinking"}},
	{dialects: []dragoman.Dialect{dragoman.Anthropic, dragoman.Bedrock, dragoman.OpenAIChat}, words: []string{"invalid", "data", "redacted_thinking"}},
	{dialects: []dragoman.Dialect{dragoman.Gemini, dragoman.OpenAIChat}, words: []string{"thought signature", "corrupted"}},
	{dialects: []dragoman.Dialect{dragoman.Gemini, dragoman.OpenAIChat}, words: []string{"thought signature", "valid"}}, // "is not valid", "invalid"
	{dialects: []dragoman.Dialect{dragoman.OpenAIResponses, dragoman.OpenAIChat}, code: "invalid_encrypted_content"},
	{dialects: []dragoman.Dialect{dragoman.OpenAIResponses, dragoman.OpenAIChat}, words: []string{"encrypted content", "could not be"}},
}

func (c *cure) helps(d dragoman.Dialect, e *dragoman.APIError) bool {
	if !slices.Contains(c.dialects, d) {
		return false
	}
	if c.code != "" {
		return e.Code == c.code
	}
	message := strings.ToLower(e.Message)
	return !slices.ContainsFunc(c.words, func(w string) bool { return !strings.Contains(message, w) })
}

// cure removes the cause of a refusal from a request, once: the reasoning of earlier
// turns, or a setting that the error names. It reports whether to send the request again.
func (x *exchange) cure(err error) bool {
	var e *dragoman.APIError
	if x.cured || x.req == nil || !errors.As(err, &e) || e.Class != dragoman.ErrorBadRequest && e.Status != 400 && e.Status != 422 {
		return false
	}
	var bare *dragoman.Request
	var losses dragoman.Report
	if slices.ContainsFunc(cures[:], func(c cure) bool { return c.helps(x.limits.Dialect, e) }) {
		bare, losses = unreasoned(x.req)
	} else if s := refusedSetting(e); s != nil {
		bare, losses = s.without(x.req)
	}
	if len(losses.Losses) == 0 {
		return false
	}
	x.req, x.losses = bare, losses
	x.cured, x.prepared = true, false
	return true
}

// unreasoned is a request without the reasoning of earlier turns, and without
// the state of it that stands on other parts.
func unreasoned(req *dragoman.Request) (*dragoman.Request, dragoman.Report) {
	var rep dragoman.Report
	out := *req
	out.Messages = make([]dragoman.Message, 0, len(req.Messages))
	for i, m := range req.Messages {
		var parts []dragoman.Part
		for j, p := range m.Parts {
			bare, changed := bareOf(p)
			if changed {
				rep.Add(dragoman.Dropped, dragoman.Warn, fmt.Sprintf("/messages/%d/parts/%d", i, j),
					"reasoning that the server did not recognise as its own; the request was sent again without it")
			}
			if bare != nil {
				parts = append(parts, bare)
			}
		}
		if len(parts) != len(m.Parts) || !slices.Equal(parts, m.Parts) {
			m.Parts = parts
		}
		if len(parts) == 0 && len(req.Messages[i].Parts) > 0 {
			continue // it was reasoning only, such as an item of Responses
		}
		out.Messages = append(out.Messages, m)
	}
	return &out, rep
}

// bareOf is a part without its reasoning; nil where nothing is left.
func bareOf(p dragoman.Part) (bare dragoman.Part, changed bool) {
	switch p := p.(type) {
	case *dragoman.Reasoning:
		return nil, true
	case *dragoman.ToolCall:
		if p.Signature != "" {
			out := *p
			out.Signature = ""
			return &out, true
		}
	case *dragoman.Text:
		if p.Signature != "" {
			out := *p
			out.Signature = ""
			return &out, true
		}
	}
	return p, false
}
