package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

// approver gives the answers of the client to the pipeline. It asks the approver of the host
// first.
type approver struct {
	s    *Server
	next tool.Approver
}

// Approve implements [tool.Approver].
func (a *approver) Approve(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	c := callFrom(ctx)
	if c != nil {
		if answer, ok := c.answerTo(req); ok {
			return answer, nil
		}
	}
	if a.next != nil {
		answer, err := a.next.Approve(ctx, req)
		if err != nil || answer.Verdict != tool.Undecided {
			return answer, err
		}
	}
	if c != nil {
		c.noteRequest(ctx, req)
	}
	return tool.Answer{}, nil
}

// ClientApprover is an approver for agents that run as tools of a server: the user of the client
// decides on the calls of the agent, too. Set it in the Runner of the agent. Outside a request
// of a client it decides nothing.
type ClientApprover struct{}

// Approve implements [tool.Approver].
func (ClientApprover) Approve(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	c := callFrom(ctx)
	if c == nil {
		return tool.Answer{}, nil
	}
	answer, ok := c.answerTo(req)
	if !ok {
		c.noteRequest(ctx, req)
	}
	return answer, nil
}

// answerTo returns the answer of the client to a request for approval.
func (c *call) answerTo(req *tool.ApprovalRequest) (tool.Answer, bool) {
	key := bindingKey(req.Binding)
	c.mu.Lock()
	defer c.mu.Unlock()
	answer, ok := c.granted[key]
	return answer, ok && !req.Refused(answer)
}

// shown holds the texts of an approval form that come from the tool.
type shown struct {
	spec    *dragoman.ToolSpec
	preview string
}

// noteRequest remembers what the form needs, because the preview exists only now.
func (c *call) noteRequest(ctx context.Context, req *tool.ApprovalRequest) {
	v := shown{spec: req.Spec}
	if req.Preview != nil {
		if text, err := req.Preview(ctx); err == nil {
			v.preview = text
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shown == nil {
		c.shown = map[string]shown{}
	}
	c.shown[bindingKey(req.Binding)] = v
}

// maxShown limits the text of arguments in a form. A user cannot judge more.
const maxShown = 16 << 10

// approvalForm returns the question about a pending call.
func (s *Server) approvalForm(c *call, p *tool.Pending) asked {
	key := bindingKey(p.Binding)
	if w := p.Wanted; w != nil && w.Name != "" {
		return s.toolQuestion(c, p)
	}
	c.mu.Lock()
	v := c.shown[key]
	c.mu.Unlock()
	q := asked{Binding: key, Wanted: p.Wanted, Freeform: v.spec != nil && v.spec.Kind == codes.ToolFreeform}

	var b strings.Builder
	fmt.Fprintf(&b, "%s: allow the tool %s to run?", visible(s.o.Name), visible(p.Tool()))
	if p.Reason != "" {
		fmt.Fprintf(&b, "\nReason: %s", visible(p.Reason))
	}
	if p.Problem != "" {
		fmt.Fprintf(&b, "\nThe last answer could not be used: %s", visible(p.Problem))
	}
	if p.Changed != nil {
		fmt.Fprintf(&b, "\nThe definition of the tool changed: %s", visible(p.Changed.String()))
	}
	text, label := v.preview, "What it would do"
	if text == "" {
		text, label = p.Input.Text, "Input"
		if p.Input.Arguments != nil {
			text, label = string(p.Input.Arguments), "Arguments"
		}
	}
	text = visible(text)
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + fmt.Sprintf("\n[%d more bytes are not shown: reject the call unless you know them]", len(text)-maxShown)
	}
	fmt.Fprintf(&b, "\n%s:\n%s\nCall %s.", label, text, p.Binding.CallID)

	properties := []string{`"approve":{"type":"boolean","title":"Allow this call","default":false}`}
	required := []string{"approve"}
	if w := p.Wanted; w != nil {
		typ := argumentType(v.spec, w.Argument)
		q.ValueRaw = typ == ""
		title := "Value of " + w.Argument
		if typ == "" {
			typ, title = "string", title+", as JSON"
		}
		value := map[string]string{"type": typ, "title": title}
		if w.Prompt != "" {
			value["description"] = w.Prompt
		}
		properties = append(properties, `"value":`+string(encode(value)))
	}
	if s.o.EditArguments && p.Wanted == nil {
		q.Edits = true
		properties = append(properties, `"arguments":{"type":"string","title":"Changed arguments","description":"Leave it empty to keep the arguments."}`)
	}
	properties = append(properties, `"message":{"type":"string","title":"Reason, if you reject the call"}`)
	form := `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":` + string(encode(required)) + `}`
	q.Question = Form(b.String(), json.RawMessage(form))
	return q
}

// toolQuestion returns a question that a running tool asks with [tool.Suspended], such as the
// form of an MCP server that this program uses: the form itself, a page to open, or a question
// for consent.
func (s *Server) toolQuestion(c *call, p *tool.Pending) asked {
	w := p.Wanted
	q := asked{Binding: bindingKey(p.Binding), Wanted: w}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: the tool %s asks during call %s.", visible(s.o.Name), visible(p.Tool()), visible(p.Binding.CallID))
	if w.From != "" {
		fmt.Fprintf(&b, "\nThe question comes from %s.", visible(w.From))
	}
	if len(w.Secrets) > 0 {
		fmt.Fprintf(&b, "\nCareful: it asks for what looks like a secret: %s. Do not enter passwords or keys.", visible(strings.Join(w.Secrets, ", ")))
	}
	fmt.Fprintf(&b, "\n%s", visible(w.Prompt))
	switch {
	case w.Schema != nil:
		q.Question = Form(b.String(), w.Schema)
	case w.URL != "" && c.caller.Can(CapElicitationURL):
		q.Question = OpenURL(b.String(), w.URL)
	default:
		if w.URL != "" {
			fmt.Fprintf(&b, "\nIt wants this page to be opened:\n%s", visible(w.URL))
		}
		q.Question = Form(b.String(), json.RawMessage(`{"type":"object","properties":{"approve":{"type":"boolean","title":"Agree","default":false}},"required":["approve"]}`))
	}
	return q
}

// decideQuestion reads the answer to a question of a tool.
func (q *asked) decideQuestion(action string, content json.RawMessage) (a tool.Answer, ok bool) {
	var consent struct {
		Approve *bool `json:"approve"`
	}
	_ = json.Unmarshal(content, &consent)
	switch {
	case action == "decline":
		return tool.Answer{Verdict: tool.Rejected}, true
	case action == "cancel":
		return tool.Answer{Verdict: tool.Rejected, NoApprover: true}, true
	case action != "accept":
		return tool.Answer{}, false
	case q.Wanted.Schema != nil:
		return tool.Answer{Verdict: tool.Approved, Value: content}, len(content) > 0
	case q.Question.needs() == CapElicitationURL:
		return tool.Answer{Verdict: tool.Approved}, true
	case consent.Approve == nil:
		return tool.Answer{}, false
	case *consent.Approve:
		return tool.Answer{Verdict: tool.Approved}, true
	default:
		return tool.Answer{Verdict: tool.Rejected}, true
	}
}

// visible returns a text in which nothing is hidden: invisible characters are escaped, except
// line breaks and tabs.
func visible(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = textkit.Visible(l)
	}
	return strings.Join(lines, "\n")
}

// argumentType returns the type of a top-level argument if a form can ask for it.
func argumentType(spec *dragoman.ToolSpec, name string) string {
	if spec == nil {
		return ""
	}
	var s struct {
		Properties map[string]struct {
			Type json.RawMessage `json:"type"`
		} `json:"properties"`
	}
	var typ string
	if json.Unmarshal(spec.Parameters, &s) == nil {
		_ = json.Unmarshal(s.Properties[name].Type, &typ)
	}
	switch typ {
	case "string", "number", "integer", "boolean":
		return typ
	}
	return ""
}

// decide reads the answer to an approval form. ok is false if it must be asked again.
func (q *asked) decide(answer json.RawMessage) (a tool.Answer, ok bool) {
	if q.Wanted != nil && q.Wanted.Name != "" {
		var got struct {
			Action  string          `json:"action"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(answer, &got) != nil {
			return tool.Answer{}, false
		}
		return q.decideQuestion(got.Action, got.Content)
	}
	var got struct {
		Action  string `json:"action"`
		Content struct {
			Approve   *bool           `json:"approve"`
			Message   string          `json:"message"`
			Value     json.RawMessage `json:"value"`
			Arguments string          `json:"arguments"`
		} `json:"content"`
	}
	if json.Unmarshal(answer, &got) != nil {
		return tool.Answer{}, false
	}
	c := &got.Content
	switch {
	case got.Action == "decline":
		return tool.Answer{Verdict: tool.Rejected, Message: c.Message}, true
	case got.Action == "cancel":
		return tool.Answer{Verdict: tool.Rejected, Message: "the user closed the question without an answer"}, true
	case got.Action != "accept" || c.Approve == nil:
		return tool.Answer{}, false
	case !*c.Approve:
		return tool.Answer{Verdict: tool.Rejected, Message: c.Message}, true
	}
	a = tool.Answer{Verdict: tool.Approved, Message: c.Message}
	if q.Wanted != nil {
		a.Value = c.Value
		if q.ValueRaw {
			var text string
			if json.Unmarshal(c.Value, &text) != nil || !json.Valid([]byte(text)) {
				return tool.Answer{}, false
			}
			a.Value = json.RawMessage(text)
		}
		if len(a.Value) == 0 {
			return tool.Answer{}, false
		}
	}
	if q.Edits && strings.TrimSpace(c.Arguments) != "" {
		in := tool.Input{Text: c.Arguments}
		if !q.Freeform {
			var object map[string]json.RawMessage
			if json.Unmarshal([]byte(c.Arguments), &object) != nil || object == nil {
				return tool.Answer{}, false
			}
			in = tool.Input{Arguments: json.RawMessage(c.Arguments)}
		}
		a.Edited = &in
	}
	return a, true
}
