package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/dragoman-go/dragoman/session/sqlite"
)

// storeFlags holds the flag that names the file of the sessions.
type storeFlags struct{ sessions string }

func (o *storeFlags) addFile(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.sessions, "sessions", "", "the SQLite file that stores the sessions (default: DRAGOMAN_SESSIONS, or dragoman/sessions.db in your state folder)")
}

// given returns the flag that names the file, quoted for a shell, for use in another
// command.
func (o *storeFlags) given() string {
	if o.sessions == "" {
		return ""
	}
	return " --sessions " + quoteArg(printable(o.sessions))
}

// store opens the file of the sessions, and creates it if it does not exist.
func (o *storeFlags) store(ctx context.Context) (*sqlite.Store, error) {
	path, err := o.file(os.Getenv)
	if err != nil {
		return nil, err
	}
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return nil, failed("cannot open the sessions in %s: %w", path, err)
	}
	return store, nil
}

// file returns the path of the sessions: --sessions, DRAGOMAN_SESSIONS, or the default.
func (o *storeFlags) file(getenv func(string) string) (string, error) {
	if o.sessions != "" {
		return o.sessions, nil
	}
	if f := getenv("DRAGOMAN_SESSIONS"); f != "" {
		return f, nil
	}
	dir := getenv("XDG_STATE_HOME")
	if dir == "" || !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", failed("cannot find your state folder: %w; name a file with --sessions", err)
		}
		dir = filepath.Join(home, ".local", "state")
		if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
			if dir, err = os.UserConfigDir(); err != nil {
				return "", failed("cannot find your configuration folder: %w; name a file with --sessions", err)
			}
		}
	}
	return filepath.Join(dir, "dragoman", "sessions.db"), nil
}
