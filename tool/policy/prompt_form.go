package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

// formField is a field of a form: a text, a number, a choice, or several choices.
type formField struct {
	name, title, description string
	// kind is "string", "number", "integer", "boolean" or "array" of choices.
	kind     string
	required bool
	// choices are the values to choose from, and labels the texts for the human.
	choices, labels []string
	// fallback is the default as JSON; nil if there is none.
	fallback json.RawMessage
}

// maxFields limits the fields that are asked one after the other.
const maxFields = 50

// isForm reports whether a schema is one whose fields can be asked one after the other.
func isForm(schema json.RawMessage) bool {
	_, ok := formOf(schema)
	return ok
}

// formOf returns the fields of a schema, if it is an object with simple fields.
func formOf(schema json.RawMessage) (fields []formField, ok bool) {
	var form struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &form) != nil || form.Type != "object" || len(form.Properties) == 0 {
		return nil, false
	}
	r := jsonwire.NewReader(form.Properties)
	if r.Kind() != '{' {
		return nil, false
	}
	for key := range r.Object() {
		f := formField{name: string(key), required: slices.Contains(form.Required, string(key))}
		if !f.read(r.Raw()) || len(fields) == maxFields {
			return nil, false
		}
		fields = append(fields, f)
	}
	return fields, r.Err() == nil && len(fields) > 0
}

// formOption is a choice with a label.
type formOption struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// formChoices are the fields of a schema that list choices.
type formChoices struct {
	Enum      []string     `json:"enum"`
	EnumNames []string     `json:"enumNames"`
	OneOf     []formOption `json:"oneOf"`
	AnyOf     []formOption `json:"anyOf"`
}

func (c *formChoices) list() (values, labels []string) {
	for i, v := range c.Enum {
		label := v
		if len(c.EnumNames) == len(c.Enum) {
			label = c.EnumNames[i]
		}
		values, labels = append(values, v), append(labels, label)
	}
	for _, o := range append(slices.Clone(c.OneOf), c.AnyOf...) {
		label := o.Title
		if label == "" {
			label = o.Const
		}
		values, labels = append(values, o.Const), append(labels, label)
	}
	return values, labels
}

// read reads the schema of a field. It returns false for one that is not simple.
func (f *formField) read(schema json.RawMessage) bool {
	var s struct {
		Type        string          `json:"type"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Default     json.RawMessage `json:"default"`
		Items       formChoices     `json:"items"`
		formChoices
	}
	if json.Unmarshal(schema, &s) != nil {
		return false
	}
	f.kind, f.title, f.description, f.fallback = s.Type, s.Title, s.Description, s.Default
	switch f.kind {
	case "string":
		f.choices, f.labels = s.list()
		return true
	case "number", "integer", "boolean":
		return len(s.Enum) == 0 && len(s.OneOf) == 0 && len(s.AnyOf) == 0
	case "array":
		f.choices, f.labels = s.Items.list()
		return len(f.choices) > 0
	default:
		return false
	}
}

// String describes the field. Its texts are those of the tool.
func (f *formField) String() string {
	var b strings.Builder
	b.WriteString(f.name)
	if f.title != "" && f.title != f.name {
		b.WriteString(" – " + f.title)
	}
	kind := map[string]string{"string": "text", "boolean": "yes or no", "integer": "whole number"}[f.kind]
	switch {
	case f.kind == "array":
		kind = "several of the choices"
	case len(f.choices) > 0:
		kind = "one of the choices"
	case kind == "":
		kind = f.kind
	}
	if f.required {
		kind += ", required"
	}
	if f.fallback != nil {
		kind += ", default " + string(f.fallback)
	}
	b.WriteString(" (" + kind + ")")
	if f.description != "" {
		b.WriteString(": " + f.description)
	}
	for i, c := range f.choices {
		fmt.Fprintf(&b, "\n  %d: %s", i+1, c)
		if f.labels[i] != c {
			b.WriteString(" – " + f.labels[i])
		}
	}
	return b.String()
}

// help says what to type for the field.
func (f *formField) help() string {
	text := map[string]string{
		"string": "Type a text", "number": "Type a number", "integer": "Type a whole number", "boolean": "Type y or n",
		"array": "Type numbers or values, separated by commas",
	}[f.kind]
	if f.kind == "string" && len(f.choices) > 0 {
		text = "Type the number or the value of a choice"
	}
	switch {
	case f.fallback != nil:
		return text + "; an empty line means the default."
	case !f.required:
		return text + "; an empty line leaves the field out."
	default:
		return text + "."
	}
}

// parse returns the value that a line means; nil leaves the field out.
func (f *formField) parse(line string) (value json.RawMessage, ok bool) {
	if line == "" {
		return f.fallback, f.fallback != nil || !f.required
	}
	switch f.kind {
	case "boolean":
		switch strings.ToLower(line) {
		case "y", "yes", "true":
			return json.RawMessage("true"), true
		case "n", "no", "false":
			return json.RawMessage("false"), true
		}
		return nil, false
	case "integer", "number":
		valid := json.Valid([]byte(line)) && strings.ContainsAny(line[:1], "-0123456789")
		if _, err := strconv.ParseInt(line, 10, 64); f.kind == "integer" && err != nil {
			return nil, false
		}
		return json.RawMessage(line), valid
	case "array":
		var list []string
		for part := range strings.SplitSeq(line, ",") {
			c, ok := f.choice(strings.TrimSpace(part))
			if !ok {
				return nil, false
			}
			list = append(list, c)
		}
		value, err := json.Marshal(list)
		return value, err == nil
	}
	if len(f.choices) > 0 {
		c, ok := f.choice(line)
		return configfile.Quote(c), ok
	}
	return configfile.Quote(line), true
}

// choice returns the choice with a value or a number. A value wins.
func (f *formField) choice(text string) (string, bool) {
	if slices.Contains(f.choices, text) {
		return text, true
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(f.choices) {
		return f.choices[n-1], true
	}
	return "", false
}

// fill asks for the fields of a form, one after the other, and shows the values before they are
// sent. Without valid answers the question stays undecided.
func (p *Prompt) fill(ctx context.Context, w *tool.InputRequest) (tool.Answer, error) {
	fields, _ := formOf(w.Schema)
	value := []byte("{}")
	for i := range fields {
		f := &fields[i]
		var b strings.Builder
		show(&b, f.String())
		v, ok, err := p.field(ctx, f, b.String()+f.help()+"\n")
		if err != nil || !ok {
			return tool.Answer{}, err
		}
		if v != nil {
			value = jsonwire.With(value, f.name, v)
		}
	}
	var b strings.Builder
	b.WriteString("This is sent:\n")
	show(&b, string(value))
	send := formField{kind: "boolean", required: true}
	v, ok, err := p.field(ctx, &send, b.String()+"y to send it, n to decline.\n")
	switch {
	case err != nil || !ok:
		return tool.Answer{}, err
	case string(v) == "true":
		return tool.Answer{Verdict: tool.Approved, Value: value}, nil
	default:
		return tool.Answer{Verdict: tool.Rejected}, nil
	}
}

// field asks for one field. ok is false if there is no valid answer.
func (p *Prompt) field(ctx context.Context, f *formField, question string) (value json.RawMessage, ok bool, err error) {
	for try := 1; ; try++ {
		if err := p.ask(question); err != nil {
			return nil, false, err
		}
		line, err := p.next(ctx)
		if errors.Is(err, errNoInput) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		if value, ok = f.parse(line); ok {
			return value, true, nil
		}
		wrong := `"` + textkit.Visible(cutLine(line)) + "\" is not a valid answer.\n"
		if try == maxTries {
			_, err := io.WriteString(p.out, wrong+"The call stays pending.\n")
			return nil, false, err
		}
		question = wrong + f.help() + "\n"
	}
}
