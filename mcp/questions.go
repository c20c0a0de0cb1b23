package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp/internal/peer"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/tool"
)

// maxTries limits how often a form is shown again because an answer did not fit it.
const maxTries = 3

// questions returns the questions of a round for the approver of the run. Questions that need
// no human, because they are declined anyway, are left out: see responses.
func (t *remoteTool) questions(w *waiting) (out []tool.InputRequest) {
	for _, q := range w.Requests {
		ask, ok := t.server.question(q, t.def.Name)
		if ok {
			out = append(out, ask)
		}
	}
	return out
}

// from names a server, and the tool that it runs, in questions (pitfall K28).
func (s *server) from(toolName string) string {
	text := fmt.Sprintf("MCP server %q", s.label)
	if toolName != "" {
		text += fmt.Sprintf(" (tool %s)", textkit.Visible(toolName))
	}
	return text
}

// question returns a request of the server as a question for a human. ok is false if it must
// not be asked.
func (s *server) question(q peer.InputRequest, toolName string) (ask tool.InputRequest, ok bool) {
	m := fieldsOf(q.Params)
	ask = tool.InputRequest{Name: q.Key, From: s.from(toolName), Prompt: cutText(jsonwire.Unquote(m["message"]))}
	if s.all.opts.asks() {
		ask.Request = request(q)
	}
	switch {
	case q.Method == peer.MethodSample && ask.Request != nil:
		ask.Prompt = cutText("It wants to send a request to your model, and gets the response.")
		return ask, len(q.Params) <= maxForm
	case q.Method == peer.MethodRoots && ask.Request != nil:
		ask.Prompt = "It wants to know the folders that you gave to the client."
		return ask, true
	case q.Method == peer.MethodSample:
		if s.all.opts.Sampling == nil {
			return ask, false
		}
		ask.Prompt = cutText("It wants to send this request to your model, and gets the response: " + string(q.Params))
		return ask, true
	case q.Method != peer.MethodElicit:
		return ask, false
	case jsonwire.Unquote(m["mode"]) == "url":
		ask.URL = jsonwire.Unquote(m["url"])
		u, err := url.Parse(ask.URL)
		return ask, err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && len(ask.URL) <= maxPrompt
	}
	ask.Schema = slices.Clone(m["requestedSchema"])
	if len(ask.Schema) == 0 || len(ask.Schema) > maxForm {
		return ask, false
	}
	for name := range fieldsOf(fieldsOf(ask.Schema)["properties"]) {
		if secretField.MatchString(name) || secretField.MatchString(jsonwire.Unquote(fieldsOf(fieldsOf(fieldsOf(ask.Schema)["properties"])[name])["title"])) {
			ask.Secrets = append(ask.Secrets, name)
		}
	}
	slices.Sort(ask.Secrets)
	return ask, true
}

// maxForm limits the schema of a form.
const maxForm = 256 << 10

// secretField matches names of fields that ask for a secret, which forms must not do.
var secretField = regexp.MustCompile(`(?i)pass(word|phrase|code|wd)|secret|token|api[-_ ]?key|private[-_ ]?key|credential|credit[-_ ]?card|card[-_ ]?number|\bcvv\b|\bcvc\b|\bssn\b|\bpin\b|\botp\b`)

// responses returns the answers of a round for the server. again holds questions to repeat,
// because an answer did not fit its form.
func (t *remoteTool) responses(ctx context.Context, w *waiting, answers map[string]tool.Answer) (out map[string]peer.Response, again []tool.InputRequest, err error) {
	out = map[string]peer.Response{}
	for key, kept := range w.Answers {
		out[key] = peer.Response{Result: kept}
	}
	for _, q := range w.Requests {
		if out[q.Key].Result != nil {
			continue
		}
		ask, ok := t.server.question(q, t.def.Name)
		if !ok {
			out[q.Key] = peer.Decline(q.Method)
			continue
		}
		response, wrong := t.server.response(ctx, q, answers[q.Key])
		if wrong != "" && w.Tries < maxTries {
			ask.Prompt = againPrompt(ask.Prompt, w.Tries+2, wrong)
			again = append(again, ask)
			continue
		}
		out[q.Key] = response
	}
	if len(again) > 0 {
		w.Tries++
		w.keep(out)
	}
	return out, again, nil
}

// keep stores answers for the continuation.
func (w *waiting) keep(answers map[string]peer.Response) {
	if w.Answers == nil {
		w.Answers = map[string]json.RawMessage{}
	}
	for key, r := range answers {
		if r.Error == nil {
			w.Answers[key] = r.Result
		}
	}
}

// response returns the answer of a human for the server. wrong says that the value does not fit
// the form; the response is then to cancel.
func (s *server) response(ctx context.Context, q peer.InputRequest, a tool.Answer) (r peer.Response, wrong string) {
	action := func(v string) peer.Response {
		return peer.Response{Result: json.RawMessage(`{"action":"` + v + `"}`)}
	}
	if s.all.opts.asks() && a.Value != nil {
		if r, ok := forwarded(q, a); ok {
			return r, ""
		}
		return peer.Decline(q.Method), ""
	}
	switch {
	case q.Method == peer.MethodSample && a.Verdict == tool.Approved && s.all.opts.Sampling != nil:
		result, err := s.sample(ctx, q.Params)
		if err != nil {
			return peer.Response{Error: &rpc.Error{Code: rpc.CodeInternal, Message: "the model request failed"}}, ""
		}
		return peer.Response{Result: result}, ""
	case q.Method != peer.MethodElicit:
		return peer.Decline(q.Method), ""
	case a.Verdict == tool.Rejected && !a.NoApprover:
		return action("decline"), ""
	case a.Verdict != tool.Approved:
		return action("cancel"), ""
	case jsonwire.Unquote(fieldsOf(q.Params)["mode"]) == "url":
		return action("accept"), ""
	}
	content, err := formContent(fieldsOf(q.Params)["requestedSchema"], a.Value)
	if err != nil {
		return action("cancel"), err.Error()
	}
	return peer.Response{Result: jsonwire.With([]byte(`{"action":"accept"}`), "content", content)}, ""
}

// formContent returns the value for a form: what the human entered, and the defaults of the
// form for the rest. It is checked against the form.
func formContent(form, value json.RawMessage) (json.RawMessage, error) {
	if len(value) == 0 {
		value = json.RawMessage("{}")
	}
	if jsonwire.NewReader(value).Kind() != '{' {
		return nil, errors.New("it is not a JSON object")
	}
	given := fieldsOf(value)
	out := []byte(value)
	if props := fieldsOf(form)["properties"]; len(props) > 0 && props[0] == '{' {
		r := jsonwire.NewReader(props)
		for key := range r.Object() {
			name := string(key)
			field := fieldsOf(r.Raw())
			if _, ok := given[name]; !ok && field["default"] != nil {
				out = jsonwire.With(out, name, field["default"])
			}
		}
	}
	v, err := schema.Compile(form)
	if err != nil {
		return nil, fmt.Errorf("the form of the server is invalid: %w", err)
	}
	if err := v.Validate(out); err != nil {
		return nil, err
	}
	return out, nil
}

// A server may ask maxOutside questions outside of calls in the time outsideTime: no call limits
// them.
const (
	maxOutside  = 20
	outsideTime = 10 * time.Minute
)

// mayAsk reports whether the server may ask questions outside of calls now.
func (s *server) mayAsk(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.asked = slices.DeleteFunc(s.asked, func(at time.Time) bool { return now.Sub(at) > outsideTime })
	if len(s.asked)+n > maxOutside {
		return false
	}
	for range n {
		s.asked = append(s.asked, now)
	}
	return true
}

// answerOutside answers questions that belong to no call of a run, with the approver of the
// options. Without one they are declined.
func (s *server) answerOutside(ctx context.Context, r peer.Round) (map[string]peer.Response, error) {
	if !s.mayAsk(len(r.Requests)) {
		s.all.log().Warn("a question of an MCP server was declined, because it asks too often", "server", s.label)
		return nil, nil
	}
	return s.answerWith(ctx, r, "", nil), nil
}

// answerWith answers questions with the first approver that decides: that of a run, which may be
// nil, and that of the options. toolName is the tool that asks; empty if it is unknown.
func (s *server) answerWith(ctx context.Context, r peer.Round, toolName string, run func(context.Context, tool.InputRequest) (tool.Answer, error)) map[string]peer.Response {
	decide := func(ask tool.InputRequest) tool.Answer {
		if run != nil {
			if a, err := run(ctx, ask); err == nil && a.Verdict != tool.Undecided {
				return a
			}
		}
		if s.all.opts.Approver == nil {
			return tool.Answer{}
		}
		a, err := s.all.opts.Approver.Approve(ctx, &tool.ApprovalRequest{
			Binding: tool.Binding{CallID: s.label + " " + r.Call}, Spec: &dragoman.ToolSpec{Name: s.label}, Reason: ask.From + " asks", Wanted: &ask,
		})
		if err != nil {
			return tool.Answer{}
		}
		return a
	}
	out := map[string]peer.Response{}
	for _, q := range r.Requests {
		out[q.Key] = peer.Decline(q.Method)
		ask, ok := s.question(q, toolName)
		if !ok {
			continue
		}
		prompt := ask.Prompt
		for try := range maxTries + 1 {
			a := decide(ask)
			if a.Verdict == tool.Undecided {
				s.all.log().Warn("a question of an MCP server was declined, because no human decided", "server", s.label, "method", q.Method)
				break
			}
			var wrong string
			if out[q.Key], wrong = s.response(ctx, q, a); wrong == "" {
				break
			}
			ask.Prompt = againPrompt(prompt, try+2, wrong)
		}
	}
	return out
}

// againPrompt returns the prompt of a question whose answer did not fit its form.
func againPrompt(prompt string, try int, wrong string) string {
	return cutText(prompt + fmt.Sprintf("\n(Try %d: the answer before did not fit the form: %s)", try, wrong))
}
