package history_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/targets"
)

func message(role dragoman.Role, parts ...dragoman.Part) dragoman.Message {
	return dragoman.Message{Role: role, Parts: parts}
}

func user(text string) dragoman.Message { return dragoman.UserText(text) }

func calls(ids ...string) dragoman.Message {
	m := dragoman.Message{Role: dragoman.RoleAssistant}
	for _, id := range ids {
		m.Parts = append(m.Parts, call(id))
	}
	return m
}

func call(id string) *dragoman.ToolCall {
	return &dragoman.ToolCall{ID: id, Name: "f_" + id, Arguments: "{}"}
}

func results(results ...*dragoman.ToolResult) dragoman.Message {
	return dragoman.ToolResults(results...)
}

func result(id, text string) *dragoman.ToolResult {
	return &dragoman.ToolResult{CallID: id, Content: []dragoman.Part{&dragoman.Text{Text: text}}}
}

func text(s string) *dragoman.Text { return &dragoman.Text{Text: s} }

// from sets the origin of a message.
func from(o dragoman.Origin, m dragoman.Message) dragoman.Message {
	m.Origin = &o
	return m
}

// script formats a conversation, one message per line.
func script(ms []dragoman.Message) string {
	var lines []string
	for i := range ms {
		line := string(ms[i].Role)
		for _, p := range ms[i].Parts {
			line += " " + format(p)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func format(p dragoman.Part) string {
	switch p := p.(type) {
	case *dragoman.Text:
		s := fmt.Sprintf("%q", p.Text)
		if p.Signature != "" {
			s += "+" + p.Signature
		}
		return s
	case *dragoman.ToolCall:
		s := "call:" + p.ID
		if p.Signature != "" {
			s += "+" + p.Signature
		}
		return s
	case *dragoman.ToolResult:
		s := fmt.Sprintf("result:%s=%q", p.CallID, p.Text())
		if p.Name != "" {
			s += "/" + p.Name
		}
		return s
	case *dragoman.Reasoning:
		return "thinks:" + p.Text
	case *dragoman.Media:
		return "media:" + p.Media
	default:
		return p.Kind()
	}
}

// strict returns limits of a wire where results directly follow their turn.
func strict(more ...func(*targets.Limits)) targets.Limits {
	l := targets.Limits{Dialect: "test", GroupedResults: true, Replay: targets.ReplayRules{
		Messages: targets.MatchDialect, Reasoning: targets.MatchDialect | targets.MatchProvider,
	}}
	for _, f := range more {
		f(&l)
	}
	return l
}

func caps(c targets.Capabilities) targets.Target { return targets.Target{Caps: c} }

// row is a conversation and its expected normalized form.
type row struct {
	name string
	o    history.Options
	in   []dragoman.Message
	want string
	// report is a part of the report; empty means that nothing changes.
	report string
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Helper()
			if r.o.Limits.Dialect == "" {
				r.o.Limits = strict()
			}
			req := &dragoman.Request{Model: "m", Messages: r.in}
			out, rep, err := history.Normalize(req, r.o)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(r.want, "\t", "")
			if got := script(out.Messages); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if r.report == "" && out != req {
				t.Errorf("a valid conversation was changed:\n%s", rep)
			}
			if !strings.Contains(rep.String(), r.report) {
				t.Errorf("the report does not contain %q:\n%s", r.report, rep)
			}
		})
	}
}

const abandoned = "The call was abandoned: it has no result, and it is not known whether it ran."
