package provider

import (
	"errors"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
)

// reasoningReader is a codec that recognizes the errors of servers that refuse reasoning of
// earlier turns.
type reasoningReader interface {
	ForeignReasoning(e *dragoman.APIError) bool
}

// refusesReasoning reports whether a server refused reasoning of earlier turns: a signature
// or encrypted content of another account, region or model (quirks D23, D30).
func refusesReasoning(codec dialect.Codec, e *dragoman.APIError) bool {
	readers := []dialect.Codec{codec}
	if wire.Of(codec).Relayed { // gateways return the errors of the API that they call
		readers = append(readers, dialects.All()...)
	}
	return slices.ContainsFunc(readers, func(c dialect.Codec) bool {
		r, ok := c.(reasoningReader)
		return ok && r.ForeignReasoning(e)
	})
}

// fixRequest removes the cause of a refusal from a request, once: the reasoning of earlier turns,
// or a setting that the error names. It reports whether to send the request again.
func (x *exchange) fixRequest(err error) bool {
	var e *dragoman.APIError
	if x.fixed || x.req == nil || !errors.As(err, &e) || e.Class != dragoman.ErrorBadRequest && e.Status != 400 && e.Status != 422 {
		return false
	}
	var bare *dragoman.Request
	var losses dragoman.Report
	if refusesReasoning(x.codec, e) {
		bare, losses = withoutReasoning(x.req)
	} else if s := refusedSetting(e); s != nil {
		bare, losses = s.without(x.req)
	}
	if len(losses.Losses) == 0 {
		return false
	}
	x.req, x.losses = bare, losses
	x.fixed, x.prepared = true, false
	return true
}

// withoutReasoning returns the request without the reasoning of earlier turns, and without the
// reasoning state on other parts.
func withoutReasoning(req *dragoman.Request) (*dragoman.Request, dragoman.Report) {
	var rep dragoman.Report
	out := *req
	out.Messages = make([]dragoman.Message, 0, len(req.Messages))
	for i, m := range req.Messages {
		var parts []dragoman.Part
		for j, p := range m.Parts {
			bare, changed := stripReasoning(p)
			if changed {
				rep.Add(dragoman.Dropped, dragoman.Warn, fmt.Sprintf("/messages/%d/parts/%d", i, j),
					"reasoning that the server did not recognize as its own; the request was sent again without it")
			}
			if bare != nil {
				parts = append(parts, bare)
			}
		}
		if len(parts) != len(m.Parts) || !slices.Equal(parts, m.Parts) {
			m.Parts = parts
		}
		if len(parts) == 0 && len(req.Messages[i].Parts) > 0 {
			continue // the message had only reasoning, such as a Responses item
		}
		out.Messages = append(out.Messages, m)
	}
	return &out, rep
}

// stripReasoning returns a part without its reasoning, or nil if nothing is left.
func stripReasoning(p dragoman.Part) (bare dragoman.Part, changed bool) {
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
