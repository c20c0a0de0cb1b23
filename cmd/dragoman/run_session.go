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

// runSession is the session of a run and the folder that its tools work in. With a nil
// store, the run is not stored.
type runSession struct {
	store *sqlite.Store
	// session is nil if the run is not stored, or if begin has not created the session
	// yet. begin then creates it with the given name; an empty name means a generated one.
	session *session.Session
	name    string
	// previous is the metadata that the session had before this run, current the metadata to
	// store.
	previous, current runMeta
	// flags are the flags of the run, for commands that continue it.
	flags *runFlags
}

// lastModel returns the spec of the model that the session used last. It is empty if the
// session is new or has no response of a known model.
func (k *runSession) lastModel(ctx context.Context) (string, error) {
	if k.session == nil {
		return "", nil
	}
	return lastModel(ctx, k.session, k.previous)
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

// runMeta is the metadata that a session stores about its runs.
type runMeta struct {
	// Folder is the absolute path of the folder that the tools work in; Model is the
	// spec of the last model.
	Folder string `json:"folder,omitempty"`
	Model  string `json:"model,omitempty"`
}

// runMetaKey is the field of a session's metadata that holds a runMeta.
const runMetaKey = "dragoman.run"

// find opens the session to continue, if there is one. It writes nothing; begin does,
// after all other checks.
func (o *runFlags) find(ctx context.Context, prompt string) (*runSession, error) {
	k := &runSession{name: o.session, flags: o}
	if o.noSession {
		return k, nil
	}
	var err error
	if k.store, err = o.store(ctx); err != nil {
		return nil, failed("%w; use --no-session to run without a session", err)
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
		err = fmt.Errorf("unknown session %q, and no prompt to start it with: give a prompt, or see \"dragoman sessions list\"", o.session)
	case err == nil:
		k.previous, err = readRunMeta(ctx, k.session)
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
	return nil, fmt.Errorf("%w: folder %s has no session to continue; run without --continue, or see \"dragoman sessions list\"", session.ErrNotFound, folder)
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
		return nil, fmt.Errorf("several session names begin with %q: %s; give more characters", name, strings.Join(found, ", "))
	}
}

// tooShort returns an error if name is a prefix of another session's generated name, but
// too short for openSession. Otherwise run would create a session with that short name.
func tooShort(ctx context.Context, store session.Store, name string) error {
	if len(name) >= minPrefix {
		return nil
	}
	for info, err := range store.List(ctx) {
		if err != nil {
			return err
		}
		if generatedID.MatchString(info.ID) && strings.HasPrefix(info.ID, name) {
			return fmt.Errorf("session name %q is too short: did you mean %s? Give at least %d characters; for a new session, choose another name", name, info.ID, minPrefix)
		}
	}
	return nil
}

// minPrefix is the shortest prefix of a generated name that openSession accepts.
const minPrefix = 4

// generatedID matches names that newSessionID and package session generate.
var generatedID = regexp.MustCompile(`^[a-z2-7]{8}([a-z2-7]{18})?$`)

// newSessionID generates a name that is short enough to type.
func newSessionID() string { return strings.ToLower(rand.Text()[:8]) }

// create creates a session with the given name, or with a generated one.
func (k *runSession) create(ctx context.Context, title string) (*session.Session, error) {
	return named(k.name, func(id string) (*session.Session, error) {
		return session.Create(ctx, k.store, session.Info{ID: id, Title: title})
	})
}

// named calls create with the name. If the name is empty, it generates names until one is
// free.
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
		return m, fmt.Errorf("metadata %s of session %s: %w", runMetaKey, s.ID(), err)
	}
	return m, nil
}

// write stores the metadata in a session.
func (m runMeta) write(ctx context.Context, s *session.Session) error {
	patch, err := json.Marshal(map[string]runMeta{runMetaKey: m})
	if err != nil {
		return err
	}
	return s.SetMetadata(ctx, patch)
}

func (k *runSession) close() {
	if k.store != nil {
		_ = k.store.Close()
	}
}

// setFolder sets the folder that the tools work in. If the session worked in another folder,
// setFolder returns an error unless --dir names the folder, so that a session does not
// continue in the wrong folder by mistake.
func (k *runSession) setFolder(dir string, named bool) error {
	k.current.Folder = absolute(dir)
	was := k.previous.Folder
	if was == "" || named || sameFolder(was, k.current.Folder) {
		return nil
	}
	return failed("session %s works in %s, but this folder is %s: continue there with \"%s --dir %s\", or move the session here with \"--dir .\"",
		k.session.ID(), was, k.current.Folder, k.command()+k.flags.given(), quoteArg(was))
}

// begin creates the session if needed, and stores the metadata if it changed.
func (k *runSession) begin(ctx context.Context, t *printer, prompt, model string) (err error) {
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
	k.current.Model = model
	if k.previous.Folder != "" && sameFolder(k.previous.Folder, k.current.Folder) {
		k.current.Folder = k.previous.Folder // keep the stored path of the same folder
	} else if k.previous.Folder != "" {
		t.notef("Session %s worked in %s; from now on it works in %s.", k.session.ID(), printable(k.previous.Folder), printable(k.current.Folder))
	}
	if k.current == k.previous {
		return nil
	}
	if err := k.current.write(ctx, k.session); err != nil {
		return failed("%w", err)
	}
	return nil
}

// command returns the command that continues the session in its folder, without the other
// flags of this run.
func (k *runSession) command() string { return "dragoman run --session " + quoteArg(k.session.ID()) }

// continueCommand returns the command that continues the session, with the flags of this run. It is
// empty if there is no session.
func (k *runSession) continueCommand() string {
	if k.session == nil {
		return ""
	}
	command := k.command()
	if !sameFolder(k.current.Folder, absolute(".")) {
		command += " --dir " + quoteArg(printable(k.current.Folder))
	}
	return command + k.flags.given()
}

// given returns the flags that the command to continue the run needs, quoted for a shell.
func (o *runFlags) given() string {
	var b strings.Builder
	b.WriteString(o.storeFlags.given())
	add := func(name, value string) {
		if value != "" {
			b.WriteString(" " + name + " " + quoteArg(printable(value)))
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
	b.WriteString(o.mcp.forRun())
	add("--system", o.system)
	for _, folder := range o.skills {
		add("--skills", folder)
	}
	if o.bare {
		b.WriteString(" --bare")
	}
	if o.turns > 0 {
		add("--max-turns", strconv.Itoa(o.turns))
	}
	return b.String()
}

// absolute returns the absolute path of a folder, with symbolic links resolved if it exists.
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

// sameFolder reports whether two paths name the same folder.
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

// quoteArg quotes a text as one argument for a POSIX shell.
func quoteArg(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(`_-./\:@%+=,`, r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
