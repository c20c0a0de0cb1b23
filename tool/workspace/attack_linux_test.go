package workspace

import (
	"fmt"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// Replacing a directory with a symlink during a call must not lead to a change in a protected
// directory.
func TestAttack_SymlinkIntoGitDuringWrite(t *testing.T) {
	p := newFixture(t, Options{})
	p.file(".git/config", "mine")
	p.file("real/config", "x")
	p.link(".git", "bad")
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, p.path("real"), unix.AT_FDCWD, p.path("bad"), unix.RENAME_EXCHANGE)
		}
	}()
	written := 0
	for i := range 4000 {
		if _, err := p.write(t.Context(), writeInput{Path: fmt.Sprintf("real/%d", i), Content: "theirs"}); err == nil {
			written++
		}
	}
	stop.Store(true)
	<-done
	if got := files(t, p.path(".git")); len(got) != 1 || got["config"] != "mine" {
		t.Errorf("the protected folder holds %q", got)
	}
	if written == 0 {
		t.Error("nothing was ever written: the race was not run")
	}
}
