package mcp

import (
	"context"
	"encoding/json"
	"math"
	"strconv"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/peer"
	"github.com/dragoman-go/dragoman/tool"
)

// formatMCP is the format of results and questions in the form of the protocol.
const formatMCP dragoman.Format = "mcp"

// asks reports whether questions of servers go to clients.
func (o *Options) asks() bool { return o.Forward && !o.NoElicitation }

// Request sends a request to a server and returns its result, raw. It is for methods that this
// package has no function for, and for programs that pass results on. An error of the server
// is returned with its text.
func (s *Servers) Request(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	one, err := s.find(server)
	if err != nil {
		return nil, err
	}
	raw, err := one.peer.Call(ctx, method, params, peer.Options{Offer: s.offer(ctx)})
	return raw, prefixed(err)
}

// Recheck decides again which tools may be used, after the lock has changed.
func (s *Servers) Recheck() {
	for _, one := range s.list {
		one.mu.Lock()
		if one.current != nil {
			one.choose()
		}
		one.mu.Unlock()
	}
}

// offer returns what the client of a call can answer.
func (s *Servers) offer(ctx context.Context) *peer.Offer {
	if !s.opts.Forward || s.opts.Offers == nil {
		return nil
	}
	o := peer.Offer(s.opts.Offers(ctx))
	return &o
}

// request returns a question in the form of the protocol.
func request(q peer.InputRequest) *dragoman.Native {
	w := jsonwire.Writer{}
	w.BeginObject()
	w.StringField("method", q.Method)
	if len(q.Params) > 0 {
		w.RawField("params", q.Params)
	}
	w.EndObject()
	return &dragoman.Native{Format: formatMCP, JSON: w.Buf}
}

// forwarded returns the answer of a client. ok is false if it is none of the protocol.
func forwarded(q peer.InputRequest, a tool.Answer) (r peer.Response, ok bool) {
	m := fieldsOf(a.Value)
	switch q.Method {
	case peer.MethodElicit:
		ok = m["action"] != nil
	case peer.MethodSample:
		ok = m["role"] != nil && m["content"] != nil
	default:
		ok = m["roots"] != nil
	}
	return peer.Response{Result: a.Value}, ok && a.Verdict != tool.Undecided
}

// numbers returns a report on progress as data, so that it keeps its numbers.
func numbers(p peer.Progress) dragoman.Part {
	w := jsonwire.Writer{}
	w.BeginObject()
	w.RawField("progress", number(p.Done))
	if p.Total > 0 {
		w.RawField("total", number(p.Total))
	}
	if p.Message != "" {
		w.StringField("message", cutText(p.Message))
	}
	w.EndObject()
	return &dragoman.Data{JSON: w.Buf}
}

func number(f float64) []byte {
	if math.IsInf(f, 0) {
		f = math.Copysign(math.MaxFloat64, f)
	}
	return strconv.AppendFloat(nil, f, 'g', -1, 64)
}
