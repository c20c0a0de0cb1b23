package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/session"
)

func newSessions() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, show, copy, rewind and delete the sessions of \"dragoman run\"",
		Long: `Sessions manages the sessions that "dragoman run" stores. A session holds the
conversation, the folder, and the outcome of every tool call. Sessions are stored in an
SQLite file: --sessions, or DRAGOMAN_SESSIONS, or dragoman/sessions.db in your state
folder ($XDG_STATE_HOME or ~/.local/state; on macOS and Windows the configuration
folder).

Instead of a full generated session name, you can give its first four or more
characters. Only delete needs the full name.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSessionsList(), newSessionsShow(), newSessionsExport(), newSessionsImport(), newSessionsBranch(), newSessionsRewind(), newSessionsDelete(),
		newSessionsActions(), newSessionsRunAction())
	return cmd
}

// sessionsFlags holds the flags that all sessions commands have.
type sessionsFlags struct {
	storeFlags
	json bool
}

// add adds the flags to a command. If report is set, the command also gets --json.
func (o *sessionsFlags) add(cmd *cobra.Command, report bool) {
	o.addFile(cmd)
	if report {
		cmd.Flags().BoolVar(&o.json, "json", false, "write the result as one JSON document")
	}
}

// openExisting opens the sessions file. If the file does not exist, it returns an empty store
// and does not create the file.
func (o *sessionsFlags) openExisting(ctx context.Context) (session.Store, error) {
	path, err := o.file(os.Getenv)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return &session.Memory{}, nil
	}
	return o.store(ctx)
}

// withSession opens the session that id names and calls do with it.
func (o *sessionsFlags) withSession(cmd *cobra.Command, id string, do func(context.Context, session.Store, *session.Session) error) error {
	ctx := cmd.Context()
	store, err := o.openExisting(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	s, err := openSession(ctx, store, id)
	if err != nil {
		return sessionNotFound(ctx, store, id, err)
	}
	if err := do(ctx, store, s); err != nil {
		var coded *exitError
		if errors.As(err, &coded) {
			return err
		}
		return failed("%w", err)
	}
	return nil
}

// sessionNotFound returns the error for an unknown session. It suggests a similar name.
func sessionNotFound(ctx context.Context, store session.Store, id string, err error) error {
	if !errors.Is(err, session.ErrNotFound) {
		return failed("%w", err)
	}
	var ids []string
	for info, err := range store.List(ctx) {
		if err != nil || len(ids) == 1000 {
			break
		}
		ids = append(ids, info.ID)
	}
	hint := textkit.Suggest(id, ids)
	if hint == "" {
		hint = `; "dragoman sessions list" shows all sessions`
	}
	return failed("unknown session %q%s", id, hint)
}

// sessionReport is a session as JSON. docs/command.md describes it.
type sessionReport struct {
	ID      string    `json:"id"`
	Title   string    `json:"title,omitempty"`
	Folder  string    `json:"folder,omitempty"`
	Model   string    `json:"model,omitempty"`
	Turns   int       `json:"turns"`
	Status  string    `json:"status"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Parent  string    `json:"parent,omitempty"`
	Partial string    `json:"partial,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// The values of sessionReport.Status.
const (
	statusEmpty      = "empty"      // the session has no run
	statusDone       = "done"       // the last run ended
	statusWaiting    = "waiting"    // calls wait for approval
	statusUnfinished = "unfinished" // the last run was interrupted
)

// reportOf describes a session. If the session cannot be read, the report holds the error,
// so that one broken session does not hide the others.
func reportOf(ctx context.Context, store session.Store, info session.Info) sessionReport {
	r := sessionReport{ID: info.ID, Title: info.Title, Created: info.Created.UTC(), Updated: info.Updated.UTC(), Parent: info.Parent, Status: statusEmpty}
	s, err := session.Open(ctx, store, info.ID)
	if err == nil {
		err = r.read(ctx, s)
	}
	if err != nil {
		r.Error = message(err)
	}
	return r
}

// read fills the fields that come from the log of the session.
func (r *sessionReport) read(ctx context.Context, s *session.Session) error {
	meta, err := readRunMeta(ctx, s)
	if err != nil {
		return err
	}
	r.Folder, r.Model = meta.Folder, meta.Model
	messages, stored, err := s.Load(ctx)
	if err != nil {
		return err
	}
	for i := range messages {
		m := &messages[i]
		if m.Role != dragoman.RoleAssistant {
			continue
		}
		if i == 0 || messages[i-1].Role != dragoman.RoleAssistant { // a response may be several messages
			r.Turns++
		}
		if meta.Model == "" && m.Origin != nil && m.Origin.Model != "" { // the session of a program, not of dragoman run
			r.Model = strings.TrimPrefix(m.Origin.Provider+"/"+m.Origin.Model, "/")
		}
	}
	return r.readState(stored)
}

func (r *sessionReport) readState(stored []byte) error {
	if stored == nil {
		return nil
	}
	var state agent.State
	if err := json.Unmarshal(stored, &state); err != nil {
		return err
	}
	r.Partial = state.Partial()
	switch {
	case state.Done():
		r.Status = statusDone
	case len(state.Pending()) > 0:
		r.Status = statusWaiting
	default:
		r.Status = statusUnfinished
	}
	return nil
}

// reportByID describes the session with the given id.
func reportByID(ctx context.Context, store session.Store, id string) (sessionReport, error) {
	info, err := store.Info(ctx, id)
	if err != nil {
		return sessionReport{}, err
	}
	return reportOf(ctx, store, info), nil
}

// reportResult reports the result of a command on a session: as JSON on standard output, or as
// text on standard error.
func (o *sessionsFlags) reportResult(ctx context.Context, cmd *cobra.Command, store session.Store, id, format string, args ...any) error {
	if o.json {
		r, err := reportByID(ctx, store, id)
		if err != nil {
			return err
		}
		return writeJSON(cmd.OutOrStdout(), r)
	}
	_, err := fmt.Fprintln(cmd.ErrOrStderr(), printable(fmt.Sprintf(format, args...)))
	return err
}

func newSessionsList() *cobra.Command {
	var o sessionsFlags
	var most int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions, the last used first",
		Long: `List prints the sessions, the last used first. For each session it prints the name, when
it was last used, the number of model calls, the status, the model, the folder, and the
beginning of the first prompt.`,
		Example: `  dragoman sessions list
  dragoman sessions list --most 0 --json`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if most < 0 {
				return usageError("--most %d must not be negative", most)
			}
			ctx := cmd.Context()
			store, err := o.openExisting(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }()
			list, more, err := listSessions(ctx, store, most)
			if err != nil {
				return failed("%w", err)
			}
			if o.json {
				return writeJSON(cmd.OutOrStdout(), list)
			}
			switch {
			case len(list) == 0:
				fmt.Fprintln(cmd.ErrOrStderr(), `No sessions yet: "dragoman run" creates them.`)
			case more:
				defer fmt.Fprintln(cmd.ErrOrStderr(), "There are more sessions: --most 0 lists all.")
			}
			return writeSessions(cmd.OutOrStdout(), list)
		},
	}
	o.add(cmd, true)
	cmd.Flags().IntVar(&most, "most", 20, "the maximum number of sessions to list; 0 lists all")
	return cmd
}

// listSessions returns up to most sessions, the most recently used first, and whether there are
// more. If most is 0, it returns all.
func listSessions(ctx context.Context, store session.Store, most int) (list []sessionReport, more bool, err error) {
	list = []sessionReport{} // scripts expect a list, not null
	for info, err := range store.List(ctx) {
		if err != nil {
			return nil, false, err
		}
		if most > 0 && len(list) == most {
			return list, true, nil
		}
		list = append(list, reportOf(ctx, store, info))
	}
	return list, false, nil
}

func writeSessions(w io.Writer, list []sessionReport) error {
	if len(list) == 0 {
		return nil
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "SESSION\tLAST USED\tTURNS\tSTATUS\tMODEL\tFOLDER\tTITLE")
	for i := range list {
		r := &list[i]
		status := r.Status
		if r.Error != "" {
			status = "unreadable"
		}
		fmt.Fprintf(tab, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", r.ID, clock(r.Updated), r.Turns, status, orDash(r.Model), orDash(r.Folder), cut(r.Title, 40))
	}
	return tab.Flush()
}

// clock formats a time for people.
func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return textkit.Visible(s)
}

// cut shortens a text to at most most characters for a terminal.
func cut(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most-1]) + "…"
	}
	return textkit.Visible(s)
}

// prompts returns the messages of a conversation that are prompts, in order.
func prompts(all []session.Stored) (out []session.Stored) {
	for i := range all {
		if isPrompt(&all[i].Message) {
			out = append(out, all[i])
		}
	}
	return out
}

func isPrompt(m *dragoman.Message) bool {
	if m.Role != dragoman.RoleUser {
		return false
	}
	for _, p := range m.Parts {
		if p.Kind() == codes.KindToolResult {
			return false
		}
	}
	return true
}

// promptNamed returns the prompt whose number is in args, as "sessions show" numbers
// prompts. Without a number, it returns the last prompt.
func promptNamed(ctx context.Context, s *session.Session, args []string) (number int, p session.Stored, err error) {
	all, err := s.Last(ctx, 0)
	if err != nil {
		return 0, p, err
	}
	list := prompts(all)
	number = len(list)
	if len(args) > 0 {
		if number, err = strconv.Atoi(args[0]); err != nil {
			return 0, p, usageError(`prompt %q is not a number: "dragoman sessions show" prints the numbers`, args[0])
		}
	}
	switch {
	case len(list) == 0:
		return 0, p, failed("session %s has no prompts", s.ID())
	case number < 1 || number > len(list):
		return 0, p, failed("session %s has prompts 1 to %d, not %d", s.ID(), len(list), number)
	}
	return number, list[number-1], nil
}

func newSessionsExport() *cobra.Command {
	var o sessionsFlags
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Write a session to standard output as JSON lines",
		Long: `Export writes a session to standard output as JSON lines: one line about the session,
then one line for each entry of its log. "dragoman sessions import" reads this format,
also on another machine. The export contains the conversation and the outcome of tool
calls. It contains no credentials of dragoman.`,
		Example: `  dragoman sessions export trip | tee trip.jsonl`,
		Args:    arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withSession(cmd, args[0], func(ctx context.Context, store session.Store, s *session.Session) error {
				return session.Export(ctx, store, s.ID(), cmd.OutOrStdout())
			})
		},
	}
	o.add(cmd, false)
	return cmd
}

func newSessionsImport() *cobra.Command {
	var o sessionsFlags
	var as string
	cmd := &cobra.Command{
		Use:   "import [FILE]",
		Short: "Create a session from an export",
		Long: `Import creates a session from a file that "dragoman sessions export" wrote, or from
standard input. It imports all of it or nothing. Do not import sessions that you do not
trust: a session records what you have approved, and you will be asked about the calls
that wait in it.`,
		Example: `  dragoman sessions export trip | dragoman sessions import --as journey --json`,
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, done, err := input(cmd, args)
			if err != nil {
				return err
			}
			defer done()
			ctx := cmd.Context()
			store, err := o.store(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }()
			info, err := session.Import(ctx, store, from, as)
			switch {
			case errors.Is(err, session.ErrExists):
				return failed("%w; choose another name with --as", err)
			case err != nil:
				return failed("%w", err)
			}
			return o.reportResult(ctx, cmd, store, info.ID, "Created session %s. Continue with: dragoman run --session %s%s \"…\"", info.ID, info.ID, o.given())
		},
	}
	o.add(cmd, true)
	cmd.Flags().StringVar(&as, "as", "", "the name of the new session (default: the name in the export)")
	return cmd
}

func newSessionsBranch() *cobra.Command {
	var o sessionsFlags
	var as string
	cmd := &cobra.Command{
		Use:   "branch SESSION [PROMPT]",
		Short: "Copy a session, or the part before a prompt, to a new session",
		Long: `Branch copies a session to a new one. With PROMPT, it copies only the part before the
prompt with that number, as "dragoman sessions show" numbers them. After that, the two
sessions are independent. Both work in the same folder.`,
		Example: `  dragoman sessions branch trip --as other-trip --json`,
		Args:    arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withSession(cmd, args[0], func(ctx context.Context, store session.Store, s *session.Session) error {
				at := s.Head()
				if len(args) > 1 {
					_, p, err := promptNamed(ctx, s, args[1:])
					if err != nil {
						return err
					}
					at = p.Seq - 1
				}
				b, err := named(as, func(id string) (*session.Session, error) { return s.Branch(ctx, at, session.Info{ID: id}) })
				if err != nil {
					return err
				}
				if err := copyMetadata(ctx, s, b); err != nil {
					return err
				}
				return o.reportResult(ctx, cmd, store, b.ID(), "Created session %s. Continue with: dragoman run --session %s%s \"…\"", b.ID(), b.ID(), o.given())
			})
		},
	}
	o.add(cmd, true)
	cmd.Flags().StringVar(&as, "as", "", "the name of the new session (default: a generated name)")
	return cmd
}

// copyMetadata copies the current folder and model of the parent to a branch.
func copyMetadata(ctx context.Context, from, to *session.Session) error {
	now, err := readRunMeta(ctx, from)
	if err != nil {
		return err
	}
	then, err := readRunMeta(ctx, to)
	if err != nil || now == then {
		return err
	}
	return now.write(ctx, to)
}

func newSessionsRewind() *cobra.Command {
	var o sessionsFlags
	var entry int64
	cmd := &cobra.Command{
		Use:   "rewind SESSION [PROMPT]",
		Short: "Undo the last prompts of a session",
		Long: `Rewind takes the conversation of a session back to the point before a prompt: the last
prompt, or the one with the number PROMPT, as "dragoman sessions show" numbers them. It
does not undo what tool calls did: files stay as they are. Rewind deletes nothing. It
prints the command that restores the session. With --entry and the number of a message,
the conversation ends with that message, and "dragoman run" continues from there.`,
		Example: `  dragoman sessions rewind trip --json`,
		Args:    arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("entry") && len(args) > 1 {
				return usageError("PROMPT and --entry cannot be used together")
			}
			return o.withSession(cmd, args[0], func(ctx context.Context, store session.Store, s *session.Session) error {
				was := fmt.Sprintf("at entry %d", entry)
				to, err := withState(ctx, s, entry)
				if err != nil {
					return err
				}
				if !cmd.Flags().Changed("entry") {
					number, p, err := promptNamed(ctx, s, args[1:])
					if err != nil {
						return err
					}
					to, was = p.Seq-1, fmt.Sprintf("before prompt %d, %q", number, cut(p.Message.Text(), 60))
				}
				head := s.Head()
				if err := s.Rewind(ctx, to); err != nil {
					return err
				}
				return o.reportResult(ctx, cmd, store, s.ID(), "Session %s is rewound to the point %s. Files stay as they are. Undo this with: dragoman sessions rewind %s --entry %d%s", s.ID(), was, s.ID(), head, o.given())
			})
		},
	}
	o.add(cmd, true)
	cmd.Flags().Int64Var(&entry, "entry", 0, "the log entry to go back to, instead of a prompt; 0 is the beginning")
	return cmd
}

// withState returns the entry of the state that was saved with a message, which a run resumes
// from, or the given entry if it is not a message that a state follows.
func withState(ctx context.Context, s *session.Session, at int64) (int64, error) {
	if at <= 0 {
		return at, nil
	}
	for e, err := range s.Entries(ctx, session.Query{After: at - 1}) {
		switch {
		case err != nil:
			return 0, err
		case e.Seq > at && e.Kind == "state":
			return e.Seq, nil
		case e.Seq == at && e.Kind != "message", e.Seq > at && e.Kind != "records":
			return at, nil
		}
	}
	return at, nil
}

func newSessionsDelete() *cobra.Command {
	var o sessionsFlags
	cmd := &cobra.Command{
		Use:     "delete SESSION...",
		Aliases: []string{"rm"},
		Short:   "Delete sessions",
		Long: `Delete deletes sessions permanently, without a confirmation. If one of the names is
unknown, it deletes nothing. To keep a copy, use "dragoman sessions export" first.`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			store, err := o.openExisting(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }()
			for _, id := range args {
				_, err := store.Info(ctx, id)
				if errors.Is(err, session.ErrNotFound) {
					if s, bad := openSession(ctx, store, id); bad == nil {
						return failed("delete needs the full name: %s", s.ID())
					}
				}
				if err != nil {
					return sessionNotFound(ctx, store, id, err)
				}
			}
			for _, id := range args {
				if err := store.Delete(ctx, id); err != nil && !errors.Is(err, session.ErrNotFound) { // the same name was given twice
					return failed("%w", err)
				}
			}
			return nil
		},
	}
	o.add(cmd, false)
	return cmd
}
