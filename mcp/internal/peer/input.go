package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// The methods of requests of a server.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"
)

// InputRequest is a question of the server.
type InputRequest struct {
	// Key names the question within its round.
	Key string `json:"key"`
	// Method is [MethodElicit], [MethodSample] or, with [Config.AskRoots], [MethodRoots].
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Response is the answer to a question: a result, or an error.
type Response struct {
	Result json.RawMessage
	Error  *rpc.Error
}

// Round is the questions that a server asks at once.
type Round struct {
	Requests []InputRequest
	// Call is the method of the call that they belong to; empty if it is unknown.
	Call string
	// InFlight says that the call waits for the answers on its connection, as in older
	// revisions: it cannot be parked.
	InFlight bool
}

// InputFunc answers the questions of a round. It may take as long as a human needs: the limits
// of the call stop. A question without an answer is declined.
type InputFunc func(ctx context.Context, r Round) (map[string]Response, error)

// maxRequests limits the questions of a round.
const maxRequests = 16

// maxQuestions limits the questions of a round, and maxState the state that the server wants
// back, in bytes: a run stores both.
const (
	maxQuestions = 4 << 20
	maxState     = 1 << 20
)

// readInputRequests reads the questions of a result, in order.
func readInputRequests(raw json.RawMessage) ([]InputRequest, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if !isObject(raw) {
		return nil, fmt.Errorf("%w: inputRequests is not an object", ErrResult)
	}
	var out []InputRequest
	r := jsonwire.NewReader(raw)
	if len(raw) > maxQuestions {
		return nil, fmt.Errorf("%w: its inputRequests are larger than %d bytes", ErrResult, maxQuestions)
	}
	for key := range r.Object() {
		q := InputRequest{Key: string(key)}
		m := fields(slices.Clone(r.Raw()))
		q.Method, q.Params = jsonwire.Unquote(m["method"]), m["params"]
		switch {
		case q.Method != MethodElicit && q.Method != MethodSample && q.Method != MethodRoots:
			return nil, fmt.Errorf("%w: it asks for the unknown input %.60q", ErrResult, q.Method)
		case slices.ContainsFunc(out, func(o InputRequest) bool { return o.Key == q.Key }):
			return nil, fmt.Errorf("%w: it asks twice under the name %.60q", ErrResult, q.Key)
		}
		if out = append(out, q); len(out) > maxRequests {
			return nil, fmt.Errorf("%w: it asks more than %d questions at once", ErrResult, maxRequests)
		}
	}
	return out, r.Err()
}

// encodeResponses returns the object of answers, sorted by name.
func encodeResponses(answers map[string]Response) (json.RawMessage, error) {
	var w jsonwire.Writer
	w.BeginObject()
	for _, key := range slices.Sorted(maps.Keys(answers)) {
		a := answers[key]
		if a.Error != nil {
			return nil, fmt.Errorf("%w: %s", ErrDeclined, a.Error.Message)
		}
		w.QuotedKey(key)
		w.Raw(a.Result)
	}
	w.EndObject()
	return w.Buf, w.Err()
}

// answer answers the questions of a result and returns the object of the answers.
func (p *Peer) answer(ctx context.Context, c *call, requests []InputRequest) (json.RawMessage, error) {
	answers, err := p.ask(ctx, c, Round{Requests: requests, Call: c.method})
	if err != nil {
		return nil, err
	}
	out, err := encodeResponses(answers)
	if err != nil {
		return nil, p.errorf("%s: %w", c.method, err)
	}
	return out, nil
}

// ask gets the answers of a round. c may be nil.
func (p *Peer) ask(ctx context.Context, c *call, r Round) (map[string]Response, error) {
	answers := map[string]Response{}
	var human []InputRequest
	for _, q := range r.Requests {
		if c != nil {
			if need := c.offer.refuses(q); need != "" {
				return nil, p.errorf("%s: %w", c.method, &rpc.MissingCapability{Need: []string{need}})
			}
		}
		switch {
		case q.Method == MethodRoots && p.cfg.AskRoots:
			human = append(human, q)
		case q.Method == MethodRoots && p.cfg.Roots != nil:
			answers[q.Key] = Response{Result: p.roots()}
		case q.Method == MethodElicit && p.cfg.Elicitation, q.Method == MethodSample && p.cfg.Sampling:
			human = append(human, q)
		default:
			return nil, p.errorf("%w: the server sent %s, which this client did not offer", ErrDeclined, q.Method)
		}
	}
	if len(human) == 0 {
		return answers, nil
	}
	f := p.cfg.Input
	if c != nil {
		f = c.input
		if c.timer.pause() && c.slot { // others may call meanwhile
			<-p.slots
		}
		defer func() {
			if c.timer.resume() && c.slot {
				p.slots <- struct{}{}
			}
		}()
	}
	if f != nil {
		r.Requests = human
		given, err := f(ctx, r)
		if errors.Is(err, ErrPark) && !r.InFlight {
			return nil, &Parked{Requests: human, Answered: answers}
		}
		if err != nil {
			return nil, err
		}
		for k, v := range given {
			answers[k] = v
		}
	}
	for _, q := range human { // fail closed
		if a, ok := answers[q.Key]; !ok || a.Error == nil && !isObject(a.Result) {
			answers[q.Key] = Decline(q.Method)
		}
	}
	return answers, nil
}

// Decline returns the answer to a question that no human was asked.
func Decline(method string) Response {
	if method == MethodElicit {
		return Response{Result: json.RawMessage(`{"action":"cancel"}`)}
	}
	return Response{Error: &rpc.Error{Code: -1, Message: "the request was not approved"}}
}

// roots returns the result of roots/list.
func (p *Peer) roots() json.RawMessage {
	list, err := json.Marshal(p.cfg.Roots)
	if err != nil {
		list = []byte("[]")
	}
	return jsonwire.With([]byte("{}"), "roots", list)
}

// respondTimeout limits sending an answer.
const respondTimeout = 30 * time.Second

// Request answers a request of the server: only older revisions have them.
func (l *link) Request(in rpc.Incoming) {
	p := l.peer
	select {
	case l.serving <- struct{}{}:
	default:
		p.start(func() {
			l.respond(in.ID, Response{Error: &rpc.Error{Code: rpc.CodeInternal, Message: "too many requests at once"}})
		})
		return
	}
	c := l.attribute(in)
	ctx, cancel := context.WithCancel(l.ctx)
	l.mu.Lock()
	if l.asked == nil {
		l.asked = map[rpc.ID]context.CancelFunc{}
	}
	_, twice := l.asked[in.ID]
	if !twice {
		l.asked[in.ID] = cancel
	}
	l.mu.Unlock()
	started := !twice && p.start(func() {
		defer cancel()
		answer := l.serve(ctx, c, in)
		l.mu.Lock()
		delete(l.asked, in.ID)
		l.mu.Unlock()
		<-l.serving
		if ctx.Err() == nil {
			l.respond(in.ID, answer)
		}
	})
	if !started { // an id that is in use, or a closed peer
		cancel()
		<-l.serving
	}
}

// respond sends an answer to the server.
func (l *link) respond(id rpc.ID, a Response) {
	select {
	case <-l.ready:
	case <-l.ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, respondTimeout)
	defer cancel()
	_ = l.conn.Respond(ctx, id, a.Result, a.Error)
}

// serve returns the answer to a request of the server.
func (l *link) serve(ctx context.Context, c *call, in rpc.Incoming) Response {
	p := l.peer
	notOffered := Response{Error: &rpc.Error{Code: rpc.CodeMethodNotFound, Message: "method not found: " + in.Method}}
	switch {
	case l.modern(): // has no requests of the server
		return notOffered
	case in.Method == "ping":
		return Response{Result: json.RawMessage("{}")}
	case in.Method == MethodRoots && p.cfg.AskRoots:
	case in.Method == MethodRoots && p.cfg.Roots != nil:
		return Response{Result: p.roots()}
	case len(in.Params) > maxQuestions:
		return Response{Error: &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf("the question is larger than %d bytes", maxQuestions)}}
	case in.Method == MethodElicit && p.cfg.Elicitation, in.Method == MethodSample && p.cfg.Sampling:
	default:
		return notOffered
	}
	r := Round{Requests: []InputRequest{{Key: "request", Method: in.Method, Params: in.Params}}, InFlight: true}
	if c != nil {
		r.Call = c.method
	} else if l.busy() > 1 { // it is unknown which call asks, and so which human: fail closed
		return Decline(in.Method)
	}
	answers, err := p.ask(ctx, c, r)
	if missing := (*rpc.MissingCapability)(nil); errors.As(err, &missing) {
		c.fail(err) // the server would wait, or go on without the answer
		return Response{Error: &rpc.Error{Code: rpc.CodeInternal, Message: missing.Error()}}
	}
	if err != nil {
		if in.Method == MethodElicit {
			return Decline(in.Method)
		}
		return Response{Error: &rpc.Error{Code: -1, Message: "the request was not approved"}}
	}
	return answers["request"]
}

// busy returns the number of open calls.
func (l *link) busy() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

// urlElicitations asks for the consent to open pages that a call needs before it can run, as
// servers of revision 2025-11-25 do with an error.
func (p *Peer) urlElicitations(ctx context.Context, c *call, e *rpc.Error) (again bool, err error) {
	list := fields(e.Data)["elicitations"]
	if len(list) == 0 || list[0] != '[' {
		return false, nil
	}
	var requests []InputRequest
	r := jsonwire.NewReader(list)
	for i := range r.Array() {
		if raw := slices.Clone(r.Raw()); i < maxRequests {
			requests = append(requests, InputRequest{Key: fmt.Sprintf("url%d", i+1), Method: MethodElicit, Params: jsonwire.With(raw, "mode", []byte(`"url"`))})
		}
	}
	if len(requests) == 0 {
		return false, nil
	}
	answers, err := p.ask(ctx, c, Round{Requests: requests, Call: c.method})
	if parked := (*Parked)(nil); errors.As(err, &parked) {
		parked.Repeat = true
	}
	if err != nil {
		return false, err
	}
	for _, q := range requests {
		if jsonwire.Unquote(fields(answers[q.Key].Result)["action"]) != "accept" {
			return false, nil
		}
	}
	return true, nil
}
