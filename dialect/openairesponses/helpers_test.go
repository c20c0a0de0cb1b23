package openairesponses

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// decodeStream feeds a stream in chunks of n bytes, closes it, and returns its events and the
// error of Feed. An incomplete stream is not an error here: its events show it.
func decodeStream(body []byte, n int, o dialect.DecodeOptions) ([]dragoman.Event, dragoman.Report, error) {
	evs, rep, err := codectest.DecodeStream(Codec{}, o, codectest.Pieces(body, n)...)
	if errors.Is(err, dragoman.ErrIncompleteStream) {
		err = nil
	}
	return evs, rep, err
}

func collect(evs []dragoman.Event) (*dragoman.Response, error) { return codectest.Collect(evs) }

// dump formats a value for comparison: everything a wire can express, without sidecars and
// origins.
func dump(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

type partView struct {
	Kind string
	Part any
}

type messageView struct {
	Role   dragoman.Role
	Phase  string
	Status string
	Parts  []partView
	Extra  *dragoman.Extra `json:",omitempty"`
}

func viewMessages(ms []dragoman.Message, strict bool) []messageView {
	var out []messageView
	for _, m := range ms {
		v := messageView{Role: m.Role, Phase: m.Phase, Status: m.Status}
		if strict {
			v.Extra = m.Extra
		}
		for _, p := range m.Parts {
			v.Parts = append(v.Parts, partView{p.Kind(), viewPart(p, strict)})
		}
		out = append(out, v)
	}
	return out
}

func viewPart(p dragoman.Part, strict bool) any {
	if strict {
		switch p := p.(type) {
		case *dragoman.Reasoning:
			q := *p
			q.Encrypted = "" // encrypted again for every event
			q.Origin = nil
			return q
		case *dragoman.Opaque:
			return p.Type
		}
		return p
	}
	switch p := p.(type) {
	case *dragoman.Text:
		return p.Text
	case *dragoman.Refusal:
		return p.Text
	case *dragoman.Reasoning:
		return []any{p.Text, p.Summary, p.ID, p.Encrypted}
	case *dragoman.ToolCall:
		args := p.Arguments
		if p.Payload == codes.PayloadObject && strings.TrimSpace(args) == "" {
			args = "{}"
		}
		return []any{p.ID, p.Name, p.Namespace, p.Payload, args, p.Problem, p.Async}
	case *dragoman.Opaque:
		return []any{p.Type, string(p.JSON)}
	default:
		return p
	}
}

// meaning returns the content of a response.
func meaning(r *dragoman.Response) string {
	return dump(map[string]any{
		"id": r.ID, "model": r.Model, "out": viewMessages(r.Output, false), "stop": []any{r.Stop.Reason, r.Stop.Native},
		"usage": []any{r.Usage.Input, r.Usage.Output, r.Usage.CacheRead.N, r.Usage.Reasoning.N}, "tier": cmp.Or(r.ServiceTier, "default"),
	})
}

// streamMeaning returns everything that a collected stream and its whole response must have in
// common.
func streamMeaning(r *dragoman.Response) string {
	return dump(map[string]any{
		"id": r.ID, "model": r.Model, "created": r.Created, "out": viewMessages(r.Output, true), "stop": r.Stop,
		"usage": r.Usage, "tier": cmp.Or(r.ServiceTier, "default"), "extra": r.Extra,
	})
}

// checkOrder reads a stream like strict clients do (quirk C23). generated is set if the encoder
// produced all of it.
func checkOrder(stream []byte, generated bool) error {
	if generated {
		return emitcheck.Stream(dialectname.OpenAIResponses, nil, stream)
	}
	return emitcheck.Order(dialectname.OpenAIResponses, stream)
}
