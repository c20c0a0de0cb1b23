package policy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

// Prompt asks a human at a terminal, one call at a time. It shows what will run: the tool's
// preview (Preview of [tool.Settings]), such as a diff, or else every argument, with multi-line
// texts as lines. It escapes everything that could move the cursor, hide text or look like the
// prompt's own text.
type Prompt struct {
	// Ledger stores the answers always and never; nil means that they are not offered.
	Ledger *Ledger

	in    *bufio.Reader
	from  io.Reader // the underlying reader of in
	out   io.Writer
	lines chan line

	mu sync.Mutex
	// reading reports that a line is being read, ended that there are no more.
	reading, ended bool
}

type line struct {
	text string
	err  error
}

var _ tool.Approver = (*Prompt)(nil)

// NewPrompt returns a prompt that reads lines from in and writes to out. Nothing else should
// read from in meanwhile.
//
// If in is a terminal, pass it directly, as [os.Stdin], not wrapped: text that was typed before
// a question is shown is then dropped, on Linux, macOS, the BSDs and Windows. Lines of any
// other reader answer one question after the other, and at its end all calls stay undecided.
func NewPrompt(in io.Reader, out io.Writer) *Prompt {
	return &Prompt{in: bufio.NewReader(in), from: in, out: out, lines: make(chan line, 1)}
}

// maxLine limits the length of an answer.
const maxLine = 1 << 20

// readLine reads one line. The last one may lack its end.
func (p *Prompt) readLine() {
	var b strings.Builder
	for {
		c, err := p.in.ReadByte()
		if err != nil && b.Len() == 0 {
			p.lines <- line{err: err}
			return
		}
		if err != nil || c == '\n' {
			p.lines <- line{text: strings.TrimSpace(b.String())}
			return
		}
		if b.Len() < maxLine {
			b.WriteByte(c)
		}
	}
}

// errNoInput reports that the input has ended.
var errNoInput = errors.New("policy: no input at the prompt")

// next reads a line. An earlier question may have left a read in progress: its line was meant
// for that question, and is dropped.
func (p *Prompt) next(ctx context.Context) (string, error) {
	for !p.ended {
		late := p.reading
		if !late {
			p.reading = true
			go p.readLine()
		}
		select {
		case l := <-p.lines:
			p.reading = false
			if l.err != nil {
				p.ended = true
				continue
			}
			if !late {
				return l.text, nil
			}
			if err := p.ask("(This line arrived before the question, and was ignored.)\n"); err != nil {
				return "", err
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	return "", errNoInput
}

// maxTries limits how often one question is repeated.
const maxTries = 3

// Approve shows the call and reads an answer. Without a valid answer the call stays undecided.
func (p *Prompt) Approve(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	if req == nil {
		return tool.Answer{}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ask(p.question(ctx, req)); err != nil {
		return tool.Answer{}, err
	}
	for try := 1; ; try++ {
		text, err := p.next(ctx)
		if errors.Is(err, errNoInput) {
			return tool.Answer{}, nil
		}
		if err != nil {
			return tool.Answer{}, err
		}
		if answer, ok := p.answer(req, text); ok {
			if answer.Verdict == tool.Approved && answer.Value == nil && req.Wanted != nil && isForm(req.Wanted.Schema) {
				return p.fill(ctx, req.Wanted)
			}
			return answer, nil
		}
		wrong := `"` + textkit.Visible(cutLine(text)) + "\" is not a valid answer.\n"
		if try == maxTries {
			_, err := io.WriteString(p.out, wrong+"The call stays pending.\n")
			return tool.Answer{}, err
		}
		if err := p.ask(wrong + p.choices(req) + "\n"); err != nil {
			return tool.Answer{}, err
		}
	}
}

// cutLine returns the beginning of a line, for a message about it.
func cutLine(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// ask shows a text and waits for a line: keys that were pressed, or text that was pasted,
// before the question was shown do not answer it.
func (p *Prompt) ask(text string) error {
	_, err := io.WriteString(p.out, text)
	if err == nil {
		err = p.dropInput()
	}
	if err == nil {
		_, err = io.WriteString(p.out, "> ")
	}
	if err != nil {
		return fmt.Errorf("policy: writing the prompt: %w", err)
	}
	return nil
}

// dropInput drops text that was already typed. If a line is being read, it is dropped when it
// arrives.
func (p *Prompt) dropInput() error {
	terminal, err := dropTyped(p.from)
	if err != nil || !terminal || p.reading {
		return err
	}
	_, err = p.in.Discard(p.in.Buffered())
	return err
}

// question returns the text for the human.
func (p *Prompt) question(ctx context.Context, req *tool.ApprovalRequest) string {
	var b strings.Builder
	verb := "wants to run"
	if req.Wanted != nil && req.Wanted.Name != "" {
		verb = fmt.Sprintf("runs (call %s)", textkit.Visible(req.Binding.CallID))
	}
	fmt.Fprintf(&b, "\n%s", textkit.Visible(req.Binding.Key.QualifiedName()))
	if req.From != "" {
		fmt.Fprintf(&b, " of %s", textkit.Visible(req.From))
	}
	b.WriteString(" " + verb)
	if len(req.Agent) > 0 {
		fmt.Fprintf(&b, " (agent %s)", textkit.Visible(strings.Join(req.Agent, "/")))
	}
	b.WriteString(":\n")
	showCall(ctx, &b, req)
	if req.Reason != "" {
		fmt.Fprintf(&b, "Why you are asked: %s\n", textkit.Visible(req.Reason))
	}
	if req.Problem != "" {
		b.WriteString("The last answer could not be used:\n")
		show(&b, req.Problem)
	}
	switch {
	case req.Wanted != nil && req.Wanted.Name != "":
		showQuestion(&b, req.Wanted)
	case req.Wanted != nil:
		fmt.Fprintf(&b, "Wanted: %s", textkit.Visible(req.Wanted.Argument))
		if req.Wanted.Prompt != "" {
			fmt.Fprintf(&b, " (%s)", textkit.Visible(req.Wanted.Prompt))
		}
		b.WriteByte('\n')
	}
	b.WriteString(p.choices(req) + "\n")
	return b.String()
}

// showQuestion writes a question of a running tool: who asks, its text, the fields of the
// value, and the page to open. Texts of the tool are marked as foreign.
func showQuestion(b *strings.Builder, w *tool.InputRequest) {
	from := w.From
	if from == "" {
		from = "The tool"
	}
	fmt.Fprintf(b, "%s asks:\n", textkit.Visible(from))
	show(b, w.Prompt)
	if w.URL != "" {
		host := ""
		if u, err := url.Parse(w.URL); err == nil {
			host = u.Host
		}
		fmt.Fprintf(b, "It wants this page to be opened, on the host %s:\n", textkit.Visible(host))
		show(b, w.URL)
	}
	fields, simple := formOf(w.Schema)
	switch {
	case simple:
		b.WriteString("Fields:\n")
		for i := range fields {
			show(b, fields[i].String())
		}
	case w.Schema != nil:
		b.WriteString("Schema of the value:\n")
		show(b, string(w.Schema))
	}
	if len(w.Secrets) > 0 {
		fmt.Fprintf(b, "Careful: it asks for what looks like a secret: %s. Do not type passwords or keys here.\n", textkit.Visible(strings.Join(w.Secrets, ", ")))
	}
}

// showCall writes what the call would do: the tool's preview, or else its input.
func showCall(ctx context.Context, b *strings.Builder, req *tool.ApprovalRequest) {
	if req.Preview != nil {
		text, err := req.Preview(ctx)
		if err == nil && text != "" {
			show(b, text)
			return
		}
		if err != nil {
			defer fmt.Fprintf(b, "No preview: %s\n", textkit.Visible(err.Error()))
		}
	}
	if req.Input.Arguments != nil {
		show(b, readable(req.Input.Arguments))
	}
	if req.Input.Text != "" || req.Input.Arguments == nil {
		show(b, req.Input.Text)
	}
}

// show writes foreign text, each line marked as such. A line that a terminal might wrap, so
// that its end could look like the prompt's own text, is split into marked lines.
func show(b *strings.Builder, text string) {
	for l := range strings.SplitSeq(text, "\n") {
		mark, rest := "  | ", textkit.Visible(l)
		for {
			n := fold(rest)
			b.WriteString(mark + rest[:n] + "\n")
			if rest = rest[n:]; rest == "" {
				break
			}
			mark = "  + "
		}
	}
}

// foldAt is the number of columns of a line that are shown; terminals have at least 80.
const foldAt = 72

// fold returns the number of bytes of a line that fit. Characters that may be two columns wide
// count as two.
func fold(s string) int {
	const wide = 0x1100 // from here on characters of two columns are found
	columns := 0
	for i, r := range s {
		columns++
		if r >= wide {
			columns++
		}
		if columns > foldAt {
			return i
		}
	}
	return len(s)
}

func (p *Prompt) choices(req *tool.ApprovalRequest) string {
	switch {
	case req.Wanted != nil && req.Wanted.Name != "" && req.Wanted.Schema == nil:
		return "y to agree, n to decline (n because …)."
	case req.Wanted != nil && req.Wanted.Name != "" && isForm(req.Wanted.Schema):
		return "y to fill in the fields, n to decline (n because …)."
	case req.Wanted != nil && req.Wanted.Name != "":
		return "Type = and then the value as JSON (for example ={\"field\": \"text\"}), y for its defaults, or n to decline (n because …)."
	case req.Wanted != nil:
		return "Type = and then the value (for example =my text), or n to reject (n because …)."
	case p.Ledger != nil:
		return "y to run it, n to reject it (n because …), always or never for this tool in this run, e {…} to run it with other arguments."
	default:
		return "y to run it, n to reject it (n because …), e {…} to run it with other arguments."
	}
}

// answer parses the input of the human.
func (p *Prompt) answer(req *tool.ApprovalRequest, text string) (tool.Answer, bool) {
	word, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	switch word = strings.ToLower(word); {
	case word == "n" || word == "no":
		return tool.Answer{Verdict: tool.Rejected, Message: strings.TrimSpace(strings.TrimPrefix(rest, "because"))}, true
	case req.Wanted != nil && req.Wanted.Name != "" && (word == "y" || word == "yes") && rest == "":
		return tool.Answer{Verdict: tool.Approved}, true
	case req.Wanted != nil:
		value, ok := strings.CutPrefix(text, "=")
		if !ok || req.Wanted.Name != "" && (req.Wanted.Schema == nil || !json.Valid([]byte(value))) {
			return tool.Answer{}, false
		}
		return tool.Answer{Verdict: tool.Approved, Value: wantedValue(req, strings.TrimSpace(value))}, true
	case (word == "y" || word == "yes") && rest == "":
		return tool.Answer{Verdict: tool.Approved}, true
	case word == "e" || word == "edit":
		return editedAnswer(req, rest)
	case word == "always" && rest == "" && p.Ledger != nil:
		p.Ledger.Always(req.Binding)
		return tool.Answer{Verdict: tool.Approved, Sticky: true}, true
	case word == "never" && p.Ledger != nil:
		p.Ledger.Never(req.Binding, rest)
		return tool.Answer{Verdict: tool.Rejected, Message: rest, Sticky: true}, true
	default:
		return tool.Answer{}, false
	}
}

// editedAnswer approves with another input, of the kind that the tool takes.
func editedAnswer(req *tool.ApprovalRequest, text string) (tool.Answer, bool) {
	if req.Input.Arguments == nil {
		return tool.Answer{Verdict: tool.Approved, Edited: &tool.Input{Text: text}}, text != ""
	}
	if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return tool.Answer{}, false
	}
	return tool.Answer{Verdict: tool.Approved, Edited: &tool.Input{Arguments: json.RawMessage(text)}}, true
}

// wantedValue parses a value according to the tool's schema: as JSON if it is valid JSON, and
// as text if the argument is a text, or nothing else fits.
func wantedValue(req *tool.ApprovalRequest, text string) json.RawMessage {
	if req.Wanted.Name != "" {
		return json.RawMessage(text)
	}
	if json.Valid([]byte(text)) && !isText(req) {
		return json.RawMessage(text)
	}
	return configfile.Quote(text)
}

// isText reports whether the schema of the wanted argument is a string.
func isText(req *tool.ApprovalRequest) bool {
	if req.Spec == nil {
		return false
	}
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	return json.Unmarshal(req.Spec.Parameters, &schema) == nil && schema.Properties[req.Wanted.Argument].Type == "string"
}
