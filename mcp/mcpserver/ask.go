package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/tool"
)

// The capabilities of a client: see [Caller.Can] and [Require].
const (
	CapElicitation    = "elicitation"     // forms
	CapElicitationURL = "elicitation/url" // opening a URL
	CapSampling       = "sampling"
	CapRoots          = "roots"
	CapTasks          = "tasks"
)

// Caller is the client that made a request.
type Caller struct {
	Principal Principal
	// Client and ClientVersion are what the client calls itself. They are not verified.
	Client, ClientVersion string
	// Revision is the revision of the protocol, such as "2026-07-28". Session is the id of
	// the session, in older revisions over HTTP.
	Revision, Session string
	// Capabilities are the constants of this package whose names begin with Cap.
	Capabilities []string
}

// Can reports whether the client declared a capability.
func (c Caller) Can(capability string) bool { return slices.Contains(c.Capabilities, capability) }

// CallerFrom returns the client whose request ctx belongs to.
func CallerFrom(ctx context.Context) (Caller, bool) {
	if c := callFrom(ctx); c != nil {
		return c.caller, true
	}
	return Caller{}, false
}

// Require returns an error unless the client declared the capabilities. If the tool returns the
// error, the client gets the error of the protocol for it.
func Require(ctx context.Context, capabilities ...string) error {
	c := callFrom(ctx)
	if c == nil {
		return errNoCall
	}
	var need []string
	for _, name := range capabilities {
		if !c.caller.Can(name) {
			need = append(need, name)
		}
	}
	if len(need) == 0 {
		return nil
	}
	return &missingCapability{need: need}
}

var errNoCall = errors.New("mcpserver: the context does not belong to a request of an MCP client")

// Question is a question to a client, made by [Form], [OpenURL], [Sample] or [Roots].
type Question struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Form asks the user to fill in a form. The schema is an object with properties that are
// strings, numbers, booleans or choices. The answer has "action" and "content".
func Form(message string, requested json.RawMessage) Question {
	return Question{methodElicit, encode(struct {
		Mode    string          `json:"mode"`
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"requestedSchema"`
	}{"form", message, requested})}
}

// OpenURL asks the user to open a URL, such as to sign in somewhere. The answer is their consent,
// not the end of what they do there.
func OpenURL(message, url string) Question {
	return Question{methodElicit, encode(struct {
		Mode    string `json:"mode"`
		Message string `json:"message"`
		URL     string `json:"url"`
	}{"url", message, url})}
}

// Sample asks the model of the client. The parameters and the answer are those of
// sampling/createMessage. The protocol deprecates it.
func Sample(params json.RawMessage) Question { return Question{methodSample, params} }

// Roots asks for the folders that the user gave to the client. The protocol deprecates it.
func Roots() Question { return Question{methodRoots, json.RawMessage(`{}`)} }

const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// needs returns the capability that a question needs.
func (q Question) needs() string {
	switch q.Method {
	case methodElicit:
		if q.mode() == "url" {
			return CapElicitationURL
		}
		return CapElicitation
	case methodSample:
		return CapSampling
	default:
		return CapRoots
	}
}

func (q Question) mode() string {
	var p struct {
		Mode string `json:"mode"`
	}
	_ = json.Unmarshal(q.Params, &p)
	return p.Mode
}

// accepts checks the form of an answer. Content that the user gave must match the form.
func (q Question) accepts(answer json.RawMessage) bool {
	var a map[string]json.RawMessage
	if json.Unmarshal(answer, &a) != nil || a == nil {
		return false
	}
	switch q.Method {
	case methodElicit:
		var action string
		if json.Unmarshal(a["action"], &action) != nil {
			return false
		}
		if action == "decline" || action == "cancel" {
			return true
		}
		if action != "accept" {
			return false
		}
		var p struct {
			Schema json.RawMessage `json:"requestedSchema"`
		}
		if q.mode() == "url" || json.Unmarshal(q.Params, &p) != nil || len(p.Schema) == 0 {
			return true
		}
		v, err := schema.Compile(p.Schema)
		return err == nil && v.Validate(a["content"]) == nil
	case methodSample:
		return a["role"] != nil && a["content"] != nil
	default:
		var roots []json.RawMessage
		return json.Unmarshal(a["roots"], &roots) == nil && a["roots"] != nil
	}
}

// Ask asks the client several questions at once and returns the answers by the same keys. A
// tool must return the error of Ask:
//
//	answers, err := mcpserver.Ask(ctx, map[string]mcpserver.Question{"branch": mcpserver.Form("Which branch?", form)})
//	if err != nil {
//		return nil, err
//	}
//
// While the client answers, the call is suspended: the tool returns, and when the answers have
// come it is called again from its beginning, with the same arguments, and Ask returns at once.
// Do everything that has an effect after the last question. The tool must ask the same
// questions in the same order each time. Prompts and resources may ask, too.
//
// In work that [Background] started, Ask waits for the answers.
func Ask(ctx context.Context, questions map[string]Question) (map[string]json.RawMessage, error) {
	c := callFrom(ctx)
	switch {
	case c == nil:
		return nil, errNoCall
	case len(questions) == 0:
		return map[string]json.RawMessage{}, nil
	}
	if work := workFrom(ctx); work != nil {
		return work.ask(ctx, c, questions)
	}
	if info, ok := tool.InfoFrom(ctx); ok && info.CallID != c.id {
		return nil, errors.New("mcpserver: Ask works in the tool that the client called, not in a tool that it calls")
	}
	return c.ask(questions)
}

// askState marks the state of a tool that was suspended by Ask.
type askState struct {
	Asking map[string]Question `json:"mcp_questions"`
}

func (c *call) ask(questions map[string]Question) (map[string]json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	round := c.round
	c.round++
	if round < len(c.rounds) {
		for key := range questions {
			if _, ok := c.rounds[round][key]; !ok {
				return nil, fmt.Errorf("mcpserver: the tool asked other questions than before it was suspended: %q is new", key)
			}
		}
		return maps.Clone(c.rounds[round]), nil
	}
	if given, ok := c.early(questions); ok && round == 0 {
		c.rounds = append(c.rounds, given)
		return maps.Clone(given), nil
	}
	var need []string
	for _, key := range slices.Sorted(maps.Keys(questions)) {
		if n := questions[key].needs(); !c.caller.Can(n) && !slices.Contains(need, n) {
			need = append(need, n)
		}
	}
	if need != nil {
		return nil, &missingCapability{need: need}
	}
	return nil, &tool.Suspended{State: encode(askState{Asking: questions})}
}

// early returns answers that the client sent before it was asked, as it may if it knows the
// tool: all of them are needed. Approvals are never given early.
func (c *call) early(questions map[string]Question) (map[string]json.RawMessage, bool) {
	out := make(map[string]json.RawMessage, len(questions))
	for key, q := range questions {
		if a, ok := c.responses[key]; !ok || !q.accepts(a) {
			return nil, false
		}
		out[key] = c.responses[key]
	}
	return out, true
}

// Progress reports the progress of a running tool to the client: how much is done, of how much
// (zero means unknown), and what. It must grow. [tool.Report] with a text reports progress
// without numbers.
func Progress(ctx context.Context, done, total float64, message string) {
	if c := callFrom(ctx); c != nil {
		c.reportNumbers(done, total, message)
	}
}

// Log sends a log message to the client, if the server declares [Options.Logging] and the client
// wants messages of the level: "debug", "info", "notice", "warning", "error", "critical",
// "alert" or "emergency".
func Log(ctx context.Context, level, logger string, data any) {
	c := callFrom(ctx)
	if c == nil || !c.s.o.Logging || c.session == nil {
		return
	}
	text := encode(data)
	if r := c.s.runner.Redactor; r != nil {
		text = json.RawMessage(r.Redact(string(text)))
	} else {
		text = json.RawMessage((*tool.Redactor)(nil).Redact(string(text)))
	}
	if !json.Valid(text) {
		return
	}
	//nolint:staticcheck // clients of older revisions use it
	_ = c.session.Log(c.ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(level), Logger: logger, Data: text})
}

// contextKey is the key of the call in a context, and workKey that of background work.
type (
	contextKey struct{}
	workKey    struct{}
)

func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(contextKey{}).(*call)
	return c
}

func workFrom(ctx context.Context) *work {
	w, _ := ctx.Value(workKey{}).(*work)
	return w
}

// askNow sends questions as requests to a client of an older revision and waits for the answers.
// opened, if not nil, gets the id of each question to open a page.
func askNow(ctx context.Context, ss *mcp.ServerSession, questions map[string]Question, opened func(id string)) (map[string]json.RawMessage, error) {
	var (
		mu     sync.Mutex
		wg     sync.WaitGroup
		out    = make(map[string]json.RawMessage, len(questions))
		failed error
	)
	for key, q := range questions {
		wg.Go(func() {
			answer, err := askOne(ctx, ss, q, opened)
			mu.Lock()
			defer mu.Unlock()
			if out[key] = answer; err != nil && failed == nil {
				failed = fmt.Errorf("the client did not answer %s: %w", q.Method, err)
			}
		})
	}
	wg.Wait()
	return out, failed
}

func askOne(ctx context.Context, ss *mcp.ServerSession, q Question, opened func(id string)) (json.RawMessage, error) {
	switch q.Method {
	case methodElicit:
		var raw struct {
			Mode    string          `json:"mode"`
			Message string          `json:"message"`
			URL     string          `json:"url"`
			Schema  json.RawMessage `json:"requestedSchema"`
		}
		if err := json.Unmarshal(q.Params, &raw); err != nil {
			return nil, err
		}
		p := &mcp.ElicitParams{Mode: raw.Mode, Message: raw.Message, URL: raw.URL}
		if raw.Mode == "url" {
			p.ElicitationID = randomID()
			if opened != nil {
				opened(p.ElicitationID)
			}
		} else {
			p.RequestedSchema = raw.Schema
		}
		res, err := ss.Elicit(ctx, p)
		if err != nil {
			return nil, err
		}
		answer := map[string]any{"action": res.Action}
		if res.Content != nil {
			answer["content"] = res.Content
		}
		return encode(answer), nil
	case methodSample:
		var p mcp.CreateMessageWithToolsParams //nolint:staticcheck // clients of older revisions use it
		if err := json.Unmarshal(q.Params, &p); err != nil {
			return nil, err
		}
		res, err := ss.CreateMessageWithTools(ctx, &p) //nolint:staticcheck // clients of older revisions use it
		if err != nil {
			return nil, err
		}
		return encode(res), nil
	default:
		res, err := ss.ListRoots(ctx, nil) //nolint:staticcheck // clients of older revisions use it
		if err != nil {
			return nil, err
		}
		return encode(res), nil
	}
}
