package errorcatalog

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
)

const (
	newTrip = `dragoman run --model sim/echo --session trip "Hello"`
	pending = `dragoman run --model sim/planner --session trip 'Write the file "a.txt" with the content "x"' < /dev/null; dragoman sessions list`
)

func sessions() section {
	return section{
		title: "From a session",
		intro: "An error does not damage a session: a confirmed write stays, and any other write is stored completely or not at all.",
		entries: []entry{
			{
				title: "Unknown session", command: `dragoman sessions show trip`, before: newTrip + `; dragoman sessions delete trip`,
				means: "The file has no session of this name.", fix: "Look at the list. Another file is named with `--sessions`.",
			},
			{
				title: "No session to continue", command: `dragoman run --continue "And now?"`,
				means: "No session was started in this folder.", fix: "Run without `--continue`, or name a session with `--session`.",
			},
			{
				title: "Session of another folder", command: `mkdir other && cd other && dragoman run --session trip "And now?"`, before: newTrip,
				means: "The tools of a session work in the folder where it began.", fix: "Continue it there, or move it here, with one of the two commands.",
			},
			{
				title: "Session name is in use", command: `dragoman sessions import trip.jsonl`, before: newTrip + `; dragoman sessions export trip > trip.jsonl`,
				means: "An import never overwrites a session.", fix: "Give it another name with `--as`.",
			},
			{
				title: "File is not an export", command: `dragoman sessions import trip.jsonl`, files: map[string]string{"trip.jsonl": "Hello\n"},
				means: "The file was not written by `dragoman sessions export`.", fix: "Export the session again.",
			},
			{
				title: "Unknown prompt number", command: `dragoman sessions rewind trip 9`, before: newTrip,
				means: "The session has fewer prompts.", fix: "`dragoman sessions show` prints the numbers.",
			},
			{
				title: "Another process continued the session", from: "`Session.Save`, after another process wrote to the session", run: conflict,
				means: "A session has one writer. `errors.Is(err, session.ErrConflict)` is true, and this process runs no more tools.", fix: "Open the session again and continue from there.",
			},
			{
				title: "Database of a newer release", from: "`dragoman sessions list`, with a file that a newer release wrote", run: sqliteFile(func(t *testing.T, db *sql.DB) { exec1(t, db, "PRAGMA user_version = 99") }),
				means: "The file has a newer format, and is left untouched.", fix: "Use the newer release.",
			},
			{
				title: "Database of another program", from: "`--sessions` with the SQLite file of another program", run: sqliteFile(func(t *testing.T, db *sql.DB) { exec1(t, db, "PRAGMA application_id = 1") }),
				means: "The file exists, but does not contain sessions. It is left untouched.", fix: "Name another file.",
			},
			{
				title: "File that is not a database", command: `dragoman sessions list`, files: map[string]string{"sessions.db": strings.Repeat("This is a text.\n", 100)},
				means: "The file has other content, or its beginning is damaged.", fix: "Name another file with `--sessions`, or restore a backup.",
			},
			{
				title: "Database is damaged", from: "`dragoman sessions list`, with a file whose pages were overwritten", run: damaged,
				means: "SQLite found invalid pages, for example after a disk failure.", fix: "Restore a backup. `sqlite3 sessions.db .recover` may save more.",
			},
			{
				title: "Database is locked", from: "a file that another process has locked for longer than `Options.BusyTimeout`", run: locked,
				means: "Another program holds the file, such as a backup or an open transaction.", fix: "Stop the other program, and try again.",
			},
			{
				title: "Disk is full", from: "`dragoman run`, with the sessions on a full disk", run: fullDisk,
				means: "The session could not be stored, so the run did not go on.", fix: "Free some space. The session has everything that was stored before.",
			},
			{
				title: "Folder of the database cannot be created", command: `dragoman sessions list --sessions request.json/sessions.db`, files: map[string]string{"request.json": "{}\n"},
				means: "A part of the path is not a folder.", fix: "Correct `--sessions` or `DRAGOMAN_SESSIONS`.",
			},
		},
	}
}

func conflict(t *testing.T) string {
	store := &session.Memory{}
	first, err := session.Create(t.Context(), store, session.Info{ID: "trip"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := session.Open(t.Context(), store, "trip")
	if err != nil {
		t.Fatal(err)
	}
	turn := []dragoman.Message{dragoman.UserText("Hello")}
	if err := second.Save(t.Context(), turn, nil); err != nil {
		t.Fatal(err)
	}
	if err = first.Save(t.Context(), turn, nil); err == nil {
		t.Fatal("no error")
	}
	return err.Error()
}

// sqliteFile returns the error of the command for a file that change has changed.
func sqliteFile(change func(*testing.T, *sql.DB)) func(*testing.T) string {
	return func(t *testing.T) string {
		path := newFile(t)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		change(t, db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return listing(t, path)
	}
}

// newFile returns a file with 50 sessions.
func newFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		s, err := session.Create(t.Context(), store, session.Info{Title: "trip"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Save(t.Context(), []dragoman.Message{dragoman.UserText(strings.Repeat("Hello. ", 500))}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func exec1(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// listing returns the error of listing the sessions of a file.
func listing(t *testing.T, path string) string {
	t.Helper()
	out, err := command(t, "sessions", "list", "--sessions", path)
	if err == nil {
		t.Fatalf("no error: %s", out)
	}
	return strings.ReplaceAll(out, path, "/home/me/project/sessions.db")
}

func damaged(t *testing.T) string {
	path := newFile(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(data); i++ {
		data[i] = 'x'
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return listing(t, path)
}

func locked(t *testing.T) string {
	path := newFile(t)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	exec1(t, db, "BEGIN EXCLUSIVE")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{BusyTimeout: 1e6})
	if err == nil {
		defer store.Close()
		_, err = session.Create(t.Context(), store, session.Info{})
	}
	if err == nil {
		t.Fatal("no error")
	}
	return strings.ReplaceAll(err.Error(), path, "/home/me/project/sessions.db")
}

// fullDisk runs the command with its sessions on a file system of 512 kB that is nearly full.
// It needs the right to mount one: root's, or that of a user namespace.
func fullDisk(t *testing.T) string {
	if os.Getpagesize() != 4096 { // what fits on the file system depends on it
		return cannotProduce
	}
	dir := t.TempDir()
	const line = `mount -t tmpfs -o size=512k none "$DISK" || exit 77
dragoman run --model sim/echo --sessions "$DISK/sessions.db" --session trip "Hello" > /dev/null 2>&1 || exit 78
cat /dev/zero > "$DISK/other" 2> /dev/null
truncate -s -44k "$DISK/other"
exec dragoman run --model sim/echo --sessions "$DISK/sessions.db" --session trip "And now?"`
	for _, flags := range [][]string{{"-m"}, {"-rm"}} {
		cmd := shell(t, dir, line, []string{"DISK=" + dir})
		unshare, err := exec.LookPath("unshare")
		if err != nil {
			return cannotProduce
		}
		cmd.Path, cmd.Args = unshare, append(append([]string{"unshare"}, flags...), cmd.Args...)
		out, err := cmd.CombinedOutput()
		switch code := cmd.ProcessState.ExitCode(); {
		case code == 77, strings.HasPrefix(string(out), "unshare:"):
			continue
		case err == nil || code != 1:
			t.Fatalf("exit code %d\n%s", code, out)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return strings.ReplaceAll(lines[len(lines)-1], dir, "/home/me/project")
	}
	return cannotProduce
}
