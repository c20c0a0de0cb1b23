package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp/internal/catalog"
)

const (
	// lockVersion is the version of the file that this package reads and writes.
	lockVersion = 1
	// maxLockBytes bounds the file.
	maxLockBytes = 64 << 20
	// lockWait is the time to wait for another process that writes the file, and lockPoll the
	// time between attempts.
	lockWait = 10 * time.Second
	lockPoll = 20 * time.Millisecond
)

// lockDocument is the file.
type lockDocument struct {
	Version int                        `json:"version"`
	Servers map[string]*lockedServer   `json:"servers"`
	Skills  map[string]json.RawMessage `json:"skills,omitempty"`
}

// OpenLock reads a lock file. A missing file is an empty lock, which [Lock.Save] creates. A file
// of a newer version, with unknown or duplicate fields, or with an invalid definition is an
// error.
func OpenLock(path string) (*Lock, error) {
	doc, err := readLock(path)
	if err != nil {
		return nil, err
	}
	return &Lock{path: path, servers: doc.Servers, skills: doc.Skills}, nil
}

// Reload reads the file again, for processes that run for long. Changes that are not saved stay.
func (l *Lock) Reload() error {
	if l.path == "" {
		return nil
	}
	doc, err := readLock(l.path)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.edits {
		e.apply(doc.Servers)
	}
	l.servers, l.skills = doc.Servers, doc.Skills
	return nil
}

// Save writes the changes of this Lock to its file. It reads the file again and applies only
// these changes, so that those of other processes stay, and replaces the file atomically. While
// it does, the file PATH.new exists and makes other processes wait. If a process died while it
// wrote, that file stays, and the error of Save names it.
func (l *Lock) Save() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path == "" {
		return errors.New("mcp: the lock has no file: open it with OpenLock")
	}
	if len(l.edits) == 0 {
		return nil
	}
	next, err := createExclusive(l.path + ".new")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = next.Close()
			_ = os.Remove(next.Name())
		}
	}()
	doc, err := readLock(l.path)
	if err != nil {
		return err
	}
	for _, e := range l.edits {
		e.apply(doc.Servers)
	}
	data, err := doc.encode()
	if err != nil {
		return fmt.Errorf("mcp: %s: %w", l.path, err)
	}
	if _, err = next.Write(data); err == nil {
		err = next.Sync()
	}
	if err = errors.Join(err, next.Close()); err != nil {
		return fmt.Errorf("mcp: write %s: %w", l.path, err)
	}
	if err = os.Rename(next.Name(), l.path); err != nil {
		return fmt.Errorf("mcp: write %s: %w", l.path, err)
	}
	l.servers, l.skills, l.edits = doc.Servers, doc.Skills, nil
	return nil
}

// createExclusive creates a file that must not exist. It waits while another process has it.
func createExclusive(path string) (*os.File, error) {
	deadline := time.Now().Add(lockWait)
	for {
		const mode = 0o644 // definitions are public and committed
		f, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, fmt.Errorf("mcp: write the lock file: %w", err)
		case time.Now().After(deadline):
			return nil, fmt.Errorf("mcp: another process writes the lock file: if none does, remove %s", path)
		}
		time.Sleep(lockPoll)
	}
}

// readLock reads a lock file. A missing file is an empty document.
func readLock(path string) (*lockDocument, error) {
	f, err := os.Open(filepath.Clean(path))
	if errors.Is(err, fs.ErrNotExist) {
		return &lockDocument{Version: lockVersion, Servers: map[string]*lockedServer{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxLockBytes+1))
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	doc, err := decodeLock(data)
	if err != nil {
		return nil, fmt.Errorf("mcp: %s: %w", path, err)
	}
	return doc, nil
}

// decodeLock reads the content of a lock file.
func decodeLock(data []byte) (*lockDocument, error) {
	if len(data) > maxLockBytes {
		return nil, fmt.Errorf("the file is larger than %d bytes", maxLockBytes)
	}
	if err := jsonwire.Check(data); err != nil { // also duplicate entries, such as of a bad merge
		return nil, fmt.Errorf("not a valid lock file: %w", err)
	}
	var version struct {
		Version json.Number `json:"version"`
	}
	if err := json.Unmarshal(data, &version); err != nil || version.Version == "" {
		return nil, errors.New("not a lock file: it has no version")
	}
	if n, err := version.Version.Int64(); err != nil || n != lockVersion {
		return nil, fmt.Errorf("the file has version %s, and this program reads version %d: use a newer program", version.Version, lockVersion)
	}
	if err := checkLockFields(data); err != nil {
		return nil, err
	}
	doc := &lockDocument{}
	if err := json.Unmarshal(data, doc); err != nil {
		return nil, fmt.Errorf("not a valid lock file: %w", err)
	}
	if doc.Servers == nil {
		doc.Servers = map[string]*lockedServer{}
	}
	for _, label := range sortedNames(doc.Servers) {
		s := doc.Servers[label]
		if s == nil || s.Identity == "" {
			return nil, fmt.Errorf("server %q has no identity", label)
		}
		if s.Tools == nil {
			s.Tools = map[string]json.RawMessage{}
		}
		for _, name := range sortedNames(s.Tools) {
			def, err := catalog.Canonical(s.Tools[name])
			switch {
			case err != nil:
				return nil, fmt.Errorf("server %q, tool %q: %w", label, name, err)
			case catalog.NameOf(def) != name || catalog.LabelOf(def) != label:
				return nil, fmt.Errorf("server %q, tool %q: the definition is of another tool", label, name)
			}
			s.Tools[name] = def
		}
	}
	return doc, nil
}

// checkLockFields returns an error for a field that this package does not know.
func checkLockFields(data []byte) error {
	r := jsonwire.NewReader(data)
	for key := range r.Object() {
		switch string(key) {
		case "version", "skills":
			r.Skip()
		case "servers":
			if err := checkServerFields(r); err != nil {
				return err
			}
		default:
			return fmt.Errorf("not a valid lock file: unknown field %q", key)
		}
	}
	return r.Err()
}

func checkServerFields(r *jsonwire.Reader) error {
	for label := range r.Object() {
		server := string(label)
		for key := range r.Object() {
			switch string(key) {
			case "identity", "tools", "prompts", "skills":
				r.Skip()
			default:
				return fmt.Errorf("not a valid lock file: server %q: unknown field %q", server, key)
			}
		}
	}
	return nil
}

// encode writes the document in a stable order, with one line for each field. Characters that
// an editor does not show are escaped.
func (d *lockDocument) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil, err
	}
	return escapeHidden(b.Bytes()), nil
}

// escapeHidden escapes the invisible characters of a JSON text.
func escapeHidden(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r < utf8.RuneSelf || textkit.IsVisible(r):
			out = append(out, data[:n]...)
		case r > math.MaxUint16:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		data = data[n:]
	}
	return out
}

// serverSource has the command or the URL of a server before variables are replaced.
type serverSource struct {
	command string
	args    []string
	url     string
}

func (s *serverSource) identity() string {
	if s.url != "" {
		u, err := url.Parse(s.url)
		if err != nil {
			return "http sha256:" + shortHash(s.url)
		}
		public := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
		text := "http " + public.String()
		if u.RawQuery != "" || u.User != nil {
			text += " sha256:" + shortHash(s.url)
		}
		return text
	}
	line, _ := json.Marshal(append([]string{s.command}, s.args...))
	return "stdio " + filepath.Base(s.command) + " sha256:" + shortHash(string(line))
}

// shortHash returns 128 bits of a hash.
func shortHash(s string) string {
	const size = 16
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:size])
}
