//go:build unix

package workspace

import (
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-go/dragoman/internal/text/toolname"
)

func TestAttack_NamedPipeDoesNotBlock(t *testing.T) {
	p := newFixture(t, Options{})
	if err := syscall.Mkfifo(p.path("pipe"), 0o644); err != nil {
		t.Skip("no named pipes here:", err)
	}
	p.link("pipe", "alias")
	p.refused("pipe")
	p.refused("alias")
	p.ok(toolname.ListFiles, args{}, "pipe  (a named pipe)")
	p.ok(toolname.SearchFiles, args{"pattern": "x"}, "0 lines match")
	p.fails(toolname.ReadFile, args{"path": "pipe"}, "is a named pipe, not a file")
}

// A pipe that replaces a file after it was checked must not block the tool either.
func TestAttack_NamedPipeDoesNotBlockOpen(t *testing.T) {
	p := newFixture(t, Options{})
	if err := syscall.Mkfifo(p.path("pipe"), 0o644); err != nil {
		t.Skip("no named pipes here:", err)
	}
	f, err := p.root.OpenFile("pipe", openWithoutWaiting, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestAttack_DeviceInTheFolder(t *testing.T) {
	p := newFixture(t, Options{})
	const zero = 1<<8 | 5
	if err := syscall.Mknod(p.path("zero"), syscall.S_IFCHR|0o666, zero); err != nil {
		t.Skip("devices cannot be made here:", err)
	}
	p.refused("zero")
	if got := p.ok(toolname.ListFiles, args{}); !strings.Contains(got, "zero  (a device)") {
		t.Error(got)
	}
}
