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
	"github.com/dragoman-go/dragoman/internal/text/visible"
	"github.com/dragoman-go/dragoman/internal/text/words"
	"github.com/dragoman-go/dragoman/session"
)

func newSessions() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, show, copy and take back the sessions of \"dragoman run\"",
		Long: `Sessions are what "dragoman run" keeps: the conversation, the folder, and what
became of every call. They are in an SQLite file: --sessions, or DRAGOMAN_SESSIONS, or
dragoman/sessions.db in your folder of state. Where a command takes the name of a
session, the first four or more characters of a generated name are enough; delete
takes whole names.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSessionsList(), newSessionsShow(), newSessionsExport(), newSessionsImport(), newSessionsBranch(), newSessionsRewind(), newSessionsDelete(),
		newSessionsActions(), newSessionsRunAction())
	return cmd
}

// sessionsFlags are those of all commands of sessions.
type sessionsFlags struct {
	storeFlags
	json bool
}

// add gives the flags to a command; report says that it has something to tell to
// scripts.
func (o *sessionsFlags) add(cmd *cobra.Command, report bool) {
	o.addFile(cmd)
	if report {
		cmd.Flags().BoolVar(&o.json, "json", false, "write one JSON document")
	}
}

// existing opens the sessions that there are: a file that is not there is not made,
// and has none.
func (o *sessionsFlags) existing(ctx context.Context) (session.Store, error) {
	path, err := o.file(os.Getenv)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return &session.Memory{}, nil
	}
	return o.store(ctx)
}

// with opens the sessions that there are and does something with one of them.
func (o *sessionsFlags) with(cmd *cobra.Command, id string, do func(context.Context, session.Store, *session.Session) error) error {
	ctx := cmd.Context()
	store, err := o.existing(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	s, err := openSession(ctx, store, id)
	if err != nil {
		return notThere(ctx, store, id, err)
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

// notThere says which session may have been meant where there is none of a name.
func notThere(ctx context.Context, store session.Store, id string, err error) error {
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
	hint := words.Meant(id, ids)
	if hint == "" {
		hint = `; "dragoman sessions list" shows those there are`
	}
	return failed("there is no session %q%s", id, hint)
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

// The words of sessionReport.Status.
const (
	statusEmpty      = "empty"      // nothing was run in it
	statusDone       = "done"       // the last run is over
	statusWaiting    = "waiting"    // calls wait for approval
	statusUnfinished = "unfinished" // the last run was interrupted
)

// reportOf tells of a session. What cannot be read is told as its error: one broken
// session hides no other.
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

// read tells what the log of a session says.
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
		if i == 0 || messages[i-1].Role != dragoman.RoleAssistant { // an answer may be several messages
			r.Turns++
		}
		if meta.Model == "" && m.Origin != nil && m.Origin.Model != "" { // a program's own session
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

// reported tells of a session by its id.
func reported(ctx context.Context, store session.Store, id string) (sessionReport, error) {
	info, err := store.Info(ctx, id)
	if err != nil {
		return sessionReport{}, err
	}
	return reportOf(ctx, store, info), nil
}

// told writes what became of a session: as JSON, or in words on standard error.
func (o *sessionsFlags) told(ctx context.Context, cmd *cobra.Command, store session.Store, id, format string, args ...any) error {
	if o.json {
		r, err := reported(ctx, store, id)
		if err != nil {
			return err
		}
		return writeJSON(cmd.OutOrStdout(), r)
	}
	_, err := fmt.Fprintln(cmd.ErrOrStderr(), shown(fmt.Sprintf(format, args...)))
	return err
}

func newSessionsList() *cobra.Command {
	var o sessionsFlags
	var most int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions, those last used first",
		Long: `List shows the sessions that were used last: the name of each, when that was, how
often the model was asked, whether something waits in it, the model, the folder, and
how it began.`,
		Example: `  dragoman sessions list
  dragoman sessions list --most 0 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if most < 0 {
				return misused("--most %d is less than none", most)
			}
			ctx := cmd.Context()
			store, err := o.existing(ctx)
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
				fmt.Fprintln(cmd.ErrOrStderr(), `There are no sessions. "dragoman run" makes them.`)
			case more:
				defer fmt.Fprintln(cmd.ErrOrStderr(), "There are more; --most 0 lists all.")
			}
			return writeSessions(cmd.OutOrStdout(), list)
		},
	}
	o.add(cmd, true)
	cmd.Flags().IntVar(&most, "most", 20, "list at most so many; 0 lists all")
	return cmd
}

// listSessions are the sessions that were used last, all where most is 0, and
// whether there are more.
func listSessions(ctx context.Context, store session.Store, most int) (list []sessionReport, more bool, err error) {
	list = []sessionReport{} // a script counts them
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

// clock is a time for people.
func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return visible.Text(s)
}

// cut is the beginning of a text, for a terminal.
func cut(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most-1]) + "…"
	}
	return visible.Text(s)
}

// prompts are the messages of a conversation that somebody asked with, in order.
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

// promptNamed is a prompt by its number, as "sessions show" numbers them; without
// one the last.
func promptNamed(ctx context.Context, s *session.Session, args []string) (number int, p session.Stored, err error) {
	all, err := s.Last(ctx, 0)
	if err != nil {
		return 0, p, err
	}
	list := prompts(all)
	number = len(list)
	if len(args) > 0 {
		if number, err = strconv.Atoi(args[0]); err != nil {
			return 0, p, misused("%q is no number of a prompt", args[0])
		}
	}
	switch {
	case len(list) == 0:
		return 0, p, failed("session %s has no prompts", s.ID())
	case number < 1 || number > len(list):
		return 0, p, failed("session %s has the prompts 1 to %d, and none of number %d", s.ID(), len(list), number)
	}
	return number, list[number-1], nil
}

func newSessionsExport() *cobra.Command {
	var o sessionsFlags
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Write a session as lines of JSON",
		Long: `Export writes all that is known of a session to standard output, as lines of JSON:
one about the session, and one for each entry of its log. "dragoman sessions import" reads
it, on another machine too. It holds what was said and done, and no credentials of
dragoman's.`,
		Example: `  dragoman sessions export trip | tee trip.jsonl`,
		Args:    arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.with(cmd, args[0], func(ctx context.Context, store session.Store, s *session.Session) error {
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
		Short: "Make a session of what export wrote",
		Long: `Import makes a session of a file that "dragoman sessions export" wrote, or of standard
input: all of it, or nothing. Take none from strangers: a session says what you have
approved, and calls in it that wait are those that you will be asked about.`,
		Example: `  dragoman sessions export trip | dragoman sessions import --as journey --json`,
		Args:    cobra.MaximumNArgs(1),
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
				return failed("%w; --as gives it another name", err)
			case err != nil:
				return failed("%w", err)
			}
			return o.told(ctx, cmd, store, info.ID, "Session %s. Go on with: dragoman run --session %s%s \"…\"", info.ID, info.ID, o.given())
		},
	}
	o.add(cmd, true)
	cmd.Flags().StringVar(&as, "as", "", "the name of the session, instead of the one that it had")
	return cmd
}

func newSessionsBranch() *cobra.Command {
	var o sessionsFlags
	var as string
	cmd := &cobra.Command{
		Use:   "branch SESSION [PROMPT]",
		Short: "Make a second session of a session, or of its beginning",
		Long: `Branch makes a session that begins as another one is, or as it was before a prompt:
its number, as "dragoman sessions show" has it. The two go separate ways from there, in
the same folder.`,
		Example: `  dragoman sessions branch trip --as other-trip --json`,
		Args:    arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.with(cmd, args[0], func(ctx context.Context, store session.Store, s *session.Session) error {
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
				if err := keepMeta(ctx, s, b); err != nil {
					return err
				}
				return o.told(ctx, cmd, store, b.ID(), "Session %s. Go on with: dragoman run --session %s%s \"…\"", b.ID(), b.ID(), o.given())
			})
		},
	}
	o.add(cmd, true)
	cmd.Flags().StringVar(&as, "as", "", "the name of the new session (default: a made-up one)")
	return cmd
}

// keepMeta gives a branch the folder and the model that its parent has now.
func keepMeta(ctx context.Context, from, to *session.Session) error {
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
		Short: "Take a session back to before a prompt",
		Long: `Rewind takes the conversation of a session back to how it was before a prompt, the
last one or that of the number, as "dragoman sessions show" has it. Files that were
written, and all else that calls did, stay as they are. Nothing is removed: what was
taken back can be had again, with the command that is told.`,
		Example: `  dragoman sessions rewind trip --json`,
		Args:    arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("entry") && len(args) > 1 {
				return misused("a prompt and --entry cannot both be")
			}
			return o.with(cmd, args[0], func(ctx context.Context, store session.Store, s *session.Session) error {
				to, was := entry, fmt.Sprintf("at entry %d", entry)
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
				return o.told(ctx, cmd, store, s.ID(), "Session %s is as it was %s. Files stay as they are. Take this back with: dragoman sessions rewind %s --entry %d%s", s.ID(), was, s.ID(), head, o.given())
			})
		},
	}
	o.add(cmd, true)
	cmd.Flags().Int64Var(&entry, "entry", 0, "the entry of the log to go back to, instead of a prompt; 0 is the beginning")
	return cmd
}

func newSessionsDelete() *cobra.Command {
	var o sessionsFlags
	cmd := &cobra.Command{
		Use:     "delete SESSION...",
		Aliases: []string{"rm"},
		Short:   "Forget sessions",
		Long: `Delete forgets sessions for good, and asks nothing. Where one of the names is that of
none, nothing is deleted. "dragoman sessions export" keeps a copy.`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			store, err := o.existing(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }()
			for _, id := range args {
				_, err := store.Info(ctx, id)
				if errors.Is(err, session.ErrNotFound) {
					if s, bad := openSession(ctx, store, id); bad == nil {
						return failed("delete needs the whole name: %s", s.ID())
					}
				}
				if err != nil {
					return notThere(ctx, store, id, err)
				}
			}
			for _, id := range args {
				if err := store.Delete(ctx, id); err != nil && !errors.Is(err, session.ErrNotFound) { // named twice
					return failed("%w", err)
				}
			}
			return nil
		},
	}
	o.add(cmd, false)
	return cmd
}
