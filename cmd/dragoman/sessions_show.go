package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/session"
)

func newSessionsShow() *cobra.Command {
	var o sessionsFlags
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show the conversation of a session",
		Long: `Show prints the conversation of a session: prompts, tool calls, the beginning of each
tool result, and the model's responses. Each prompt has a number, which "dragoman
sessions rewind" and "dragoman sessions branch" accept. With --json, messages are
printed in full.`,
		Example: `  dragoman sessions show trip
  dragoman sessions show trip --json`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withSession(cmd, args[0], func(ctx context.Context, store session.Store, s *session.Session) error {
				r, err := reportByID(ctx, store, s.ID())
				if err != nil {
					return err
				}
				all, err := s.Last(ctx, 0)
				if err != nil {
					return err
				}
				if o.json {
					return writeJSON(cmd.OutOrStdout(), shownSession{r, shownMessages(all)})
				}
				return writeSession(cmd.OutOrStdout(), r, all)
			})
		},
	}
	o.add(cmd, true)
	return cmd
}

// shownSession is a session with its conversation as JSON. docs/command.md describes
// it.
type shownSession struct {
	sessionReport
	Messages []shownMessage `json:"messages"`
}

// shownMessage is a message with its position in the session.
type shownMessage struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	// Prompt is the number of the prompt. It is 0 if the message is not a prompt.
	Prompt  int              `json:"prompt,omitempty"`
	Message dragoman.Message `json:"message"`
}

func shownMessages(all []session.Stored) []shownMessage {
	out := make([]shownMessage, len(all))
	prompt := 0
	for i := range all {
		out[i] = shownMessage{Seq: all[i].Seq, Time: all[i].Time.UTC(), Message: all[i].Message}
		if isPrompt(&all[i].Message) {
			prompt++
			out[i].Prompt = prompt
		}
	}
	return out
}

// writeSession prints a session for a person to read.
func writeSession(w io.Writer, r sessionReport, all []session.Stored) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Session %s, %s, %s, begun %s, last used %s\n", r.ID, plural(r.Turns, "turn", "turns"), r.Status, clock(r.Created), clock(r.Updated))
	for _, line := range []struct{ name, value string }{
		{"folder", r.Folder},
		{"model", r.Model},
		{"branch of", r.Parent},
		{"unreadable", r.Error},
	} {
		if line.value != "" {
			fmt.Fprintf(&b, "%s: %s\n", line.name, textkit.Visible(line.value))
		}
	}
	for _, m := range shownMessages(all) {
		if m.Prompt > 0 {
			fmt.Fprintf(&b, "\n[%d] ", m.Prompt)
		}
		writeMessage(&b, &m.Message)
	}
	if r.Partial != "" {
		fmt.Fprintf(&b, "%s\n(interrupted here)\n", strings.TrimRight(printable(r.Partial), "\n"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeMessage prints the readable parts of a message in full, and only the type of other
// parts.
func writeMessage(b *strings.Builder, m *dragoman.Message) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.Text:
			fmt.Fprintln(b, strings.TrimRight(printable(p.Text), "\n"))
		case *dragoman.ToolCall:
			fmt.Fprintf(b, "→ %s %s\n", textkit.Visible(p.QualifiedName()), short(p.Arguments))
		case *dragoman.ToolResult:
			text, _, more := strings.Cut(strings.TrimSpace(p.PlainText()), "\n")
			if text = short(text); more {
				text += " …"
			}
			fmt.Fprintf(b, "← %s\n", text)
		case *dragoman.Reasoning:
		default:
			fmt.Fprintf(b, "(%s)\n", p.Kind())
		}
	}
}
