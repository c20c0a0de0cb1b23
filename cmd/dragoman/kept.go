package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
)

// kept is the session that a run is kept in, and the folder that its tools work in.
// Without a store nothing is kept.
type kept struct {
	store *sqlite.Store
	// session is nil where there is none, or not yet: then name is that of the one to
	// begin, empty for any.
	session *session.Session
	name    string
	// was is what the session knew of the run before, is what it shall know.
	was, is runMeta
	// flags are the flags of the run, for commands that continue it.
	flags *runFlags
}

// lastModel returns the spec of the model that the session used last. It is empty if the
// session is new or has no response of a known model.
func (k *kept) lastModel(ctx context.Context) (string, error) {
	if k.session == nil {
		return "", nil
	}
	return lastModel(ctx, k.session, k.was)
}

// lastModel returns the model in the metadata of a run, or the model of the last response
// if a program made the session.
func lastModel(ctx context.Context, s *session.Session, meta runMeta) (string, error) {
	if meta.Model != "" {
		return meta.Model, nil
	}
	messages, _, err := s.Load(ctx)
	if err != nil {
		return "", err
	}
	for _, m := range slices.Backward(messages) {
		if m.Role == dragoman.RoleAssistant && m.Origin != nil && m.Origin.Model != "" {
			return strings.TrimPrefix(m.Origin.Provider+"/"+m.Origin.Model, "/"), nil
		}
	}
	return "", nil
}

// runMeta is what a session keeps of the runs in it, beside the conversation.
type runMeta struct {
	// Folder is what the tools work in, absolute; Model is how the last one was named.
	Folder string `json:"folder,omitempty"`
	Model  string `json:"model,omitempty"`
}

// runMetaKey is the member of a session's metadata that holds a runMeta.
const runMetaKey = "dragoman.run"

// find looks for the session to go on with. Nothing is written before all else is
// known to be well.
func (o *runFlags) find(ctx context.Context, prompt string) (*kept, error) {
	k := &kept{name: o.session, flags: o}
	if o.forget {
		return k, nil
	}
	var err error
	if k.store, err = o.store(ctx); err != nil {
		return nil, failed("%w; --no-session does without", err)
	}
	switch {
	case o.last:
		k.session, err = lastSession(ctx, k.store, o.dir)
	case o.session == "":
		return k, nil
	default:
		k.session, err = openSession(ctx, k.store, o.session)
	}
	switch {
	case errors.Is(err, session.ErrNotFound) && prompt != "" && !o.last:
		k.session, err = nil, tooShort(ctx, k.store, o.session)
	case errors.Is(err, session.ErrNotFound) && !o.last:
		err = fmt.Errorf("no session %q, and no prompt to begin one: give a prompt, or see \"dragoman sessions list\"", o.session)
	case err == nil:
		k.was, err = readRunMeta(ctx, k.session)
	}
	if err != nil {
		k.close()
		return nil, failed("%w", err)
	}
	return k, nil
}

// lastSession opens the session of a folder that was used last.
func lastSession(ctx context.Context, store session.Store, dir string) (*session.Session, error) {
	folder := absolute(dir)
	for info, err := range store.List(ctx) {
		if err != nil {
			return nil, err
		}
		s, err := session.Open(ctx, store, info.ID)
		if err != nil {
			continue // a broken session must not hide the others
		}
		if meta, err := readRunMeta(ctx, s); err == nil && meta.Folder != "" && sameFolder(meta.Folder, folder) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: --continue finds no session of %s; run without it, or see \"dragoman sessions list\"", session.ErrNotFound, folder)
}

// openSession opens a session by its name, or by a prefix of a generated name if only
// one session has that prefix.
func openSession(ctx context.Context, store session.Store, name string) (*session.Session, error) {
	s, err := session.Open(ctx, store, name)
	if !errors.Is(err, session.ErrNotFound) || len(name) < minPrefix {
		return s, err
	}
	var found []string
	for info, bad := range store.List(ctx) {
		if bad != nil {
			return nil, bad
		}
		if generatedID.MatchString(info.ID) && strings.HasPrefix(info.ID, name) {
			found = append(found, info.ID)
		}
	}
	switch len(found) {
	case 0:
		return nil, err
	case 1:
		return session.Open(ctx, store, found[0])
	default:
		return nil, fmt.Errorf("several sessions begin with %q: %s; give more of the name", name, strings.Join(found, ", "))
	}
}

// tooShort refuses to begin a session whose name is a prefix of the generated name of
// another, but too short for openSession.
func tooShort(ctx context.Context, store session.Store, name string) error {
	if len(name) >= minPrefix {
		return nil
	}
	for info, err := range store.List(ctx) {
		if err != nil {
			return err
		}
		if generatedID.MatchString(info.ID) && strings.HasPrefix(info.ID, name) {
			return fmt.Errorf("%q is too short for the name of a session: did you mean %s? At least %d characters are needed; for a new session, choose another name", name, info.ID, minPrefix)
		}
	}
	return nil
}

// minPrefix is the shortest prefix of a generated name that openSession takes.
const minPrefix = 4

// generatedID matches names that newSessionID and package session generate.
var generatedID = regexp.MustCompile(`^[a-z2-7]{8}([a-z2-7]{18})?$`)

// newSessionID generates a name that is short enough to type.
func newSessionID() string { return strings.ToLower(rand.Text()[:8]) }

// create makes a session with the name that was given, or with a generated one.
func (k *kept) create(ctx context.Context, title string) (*session.Session, error) {
	return named(k.name, func(id string) (*session.Session, error) {
		return session.Create(ctx, k.store, session.Info{ID: id, Title: title})
	})
}

// named creates a session with the name, or with a generated name if it is empty.
func named(name string, create func(id string) (*session.Session, error)) (*session.Session, error) {
	if name != "" {
		return create(name)
	}
	for {
		s, err := create(newSessionID())
		if !errors.Is(err, session.ErrExists) {
			return s, err
		}
	}
}

func readRunMeta(ctx context.Context, s *session.Session) (m runMeta, err error) {
	all, err := s.Metadata(ctx)
	if err != nil || all[runMetaKey] == nil {
		return m, err
	}
	if err := json.Unmarshal(all[runMetaKey], &m); err != nil {
		return m, fmt.Errorf("the metadata %s of session %s: %w", runMetaKey, s.ID(), err)
	}
	return m, nil
}

// write keeps it in a session.
func (m runMeta) write(ctx context.Context, s *session.Session) error {
	patch, err := json.Marshal(map[string]runMeta{runMetaKey: m})
	if err != nil {
		return err
	}
	return s.SetMetadata(ctx, patch)
}

func (k *kept) close() {
	if k.store != nil {
		_ = k.store.Close()
	}
}

// settle says in which folder the tools work. A session that worked in another one
// than this does not go on here by mistake: somebody has to name a folder.
func (k *kept) settle(dir string, named bool) error {
	k.is.Folder = absolute(dir)
	was := k.was.Folder
	if was == "" || named || sameFolder(was, k.is.Folder) {
		return nil
	}
	return failed("session %s works in %s, and this is %s: go on there with \"%s --dir %s\", or let it work here from now on with \"--dir .\"",
		k.session.ID(), was, k.is.Folder, k.command()+k.flags.given(), quoteArg(was))
}

// begin makes the session where there is none, and keeps in it what is new.
func (k *kept) begin(ctx context.Context, t *teller, prompt, model string) (err error) {
	if k.store == nil {
		return nil
	}
	if k.session == nil {
		if k.session, err = k.create(ctx, title(prompt)); err != nil {
			return failed("%w", err)
		}
		if k.name != "" && !t.json {
			t.notef("New session %s.", k.session.ID())
		}
	}
	k.is.Model = model
	if k.was.Folder != "" && sameFolder(k.was.Folder, k.is.Folder) {
		k.is.Folder = k.was.Folder // by whatever name it has here
	} else if k.was.Folder != "" {
		t.notef("Session %s worked in %s; from now on it works in %s.", k.session.ID(), shown(k.was.Folder), shown(k.is.Folder))
	}
	if k.is == k.was {
		return nil
	}
	if err := k.is.write(ctx, k.session); err != nil {
		return failed("%w", err)
	}
	return nil
}

// command returns the command that continues the session in its folder, without the other
// flags of this run.
func (k *kept) command() string { return "dragoman run --session " + quoteArg(k.session.ID()) }

// again returns the command that continues the session, with the flags of this run. It is
// empty if there is no session.
func (k *kept) again() string {
	if k.session == nil {
		return ""
	}
	command := k.command()
	if !sameFolder(k.is.Folder, absolute(".")) {
		command += " --dir " + quoteArg(shown(k.is.Folder))
	}
	return command + k.flags.given()
}

// given returns the flags that the command to continue the run needs, quoted for a shell.
func (o *runFlags) given() string {
	var b strings.Builder
	b.WriteString(o.storeFlags.given())
	add := func(name, value string) {
		if value != "" {
			b.WriteString(" " + name + " " + quoteArg(shown(value)))
		}
	}
	add("--model", o.model)
	add("--policy", o.policy)
	for _, key := range slices.Sorted(maps.Keys(o.metadata)) {
		add("--metadata", key+"="+o.metadata[key])
	}
	add("--allow", strings.Join(o.allow, ","))
	for _, pattern := range o.commands.patterns {
		add("--allow-command", pattern)
	}
	add("--system", o.system)
	if o.turns > 0 {
		add("--max-turns", strconv.Itoa(o.turns))
	}
	return b.String()
}

// absolute is a folder by its full name, without links where it is there.
func absolute(dir string) string {
	full, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	if real, err := filepath.EvalSymlinks(full); err == nil {
		return real
	}
	return full
}

// sameFolder reports whether two names are those of one folder.
func sameFolder(a, b string) bool {
	if a == b {
		return true
	}
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// quoteArg is a text as a POSIX shell takes it for one word.
func quoteArg(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(`_-./\:@%+=,`, r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
