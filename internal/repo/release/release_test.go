package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

// slowVariable turns on the tests that compile the command.
const slowVariable = "DRAGOMAN_RELEASE"

func repoRoot(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := git(root, "rev-parse", "HEAD"); err != nil {
		t.Skip("not a Git checkout")
	}
	return root
}

// run runs a program and returns what it writes.
func run(t *testing.T, env []string, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestVersionNeedsTheTag(t *testing.T) {
	root := t.TempDir()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	commit := func() {
		run(t, nil, root, "git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "x")
	}
	run(t, nil, root, "git", "init", "-q")
	commit()
	o := options{root: root, version: "v1.2.3"}
	if err := checkTag(o); err == nil || !strings.Contains(err.Error(), "does not have the tag v1.2.3") {
		t.Errorf("without a tag: %v", err)
	}
	run(t, nil, root, "git", "tag", "v1.2.3")
	if err := checkTag(o); err != nil {
		t.Errorf("with the tag: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkTag(o); err == nil || !strings.Contains(err.Error(), "has changes") {
		t.Errorf("with a change: %v", err)
	}
	if err := release(options{root: root, version: "1.2.3"}); err == nil {
		t.Error("a version without v was accepted")
	}
}

func TestModuleHasNoNestedModules(t *testing.T) {
	files, err := moduleFiles(repoRoot(t))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range files {
		seen[f] = true
		for _, nested := range []string{"bench/", "sdktest/", "tools/"} {
			if strings.HasPrefix(f, nested) {
				t.Errorf("%s belongs to a nested module", f)
			}
		}
	}
	for _, want := range []string{"go.mod", "LICENSE", "cmd/dragoman/main.go"} {
		if !seen[want] {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestReleaseRunsAndInstalls builds a release for this system, runs the program of its
// archive, and installs the command from a file proxy, as users do from a tag.
func TestReleaseRunsAndInstalls(t *testing.T) {
	if os.Getenv(slowVariable) == "" {
		t.Skipf("compiles the command twice; set %s=1 to run it", slowVariable)
	}
	const version = "v0.0.1-test"
	out := t.TempDir()
	o := options{
		root: repoRoot(t), version: version, out: out, snapshot: true, proxy: true,
		targets: []string{runtime.GOOS + "/" + runtime.GOARCH},
	}
	if err := release(o); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(out, fmt.Sprintf("dragoman_%s_%s_%s.tar.gz", version, runtime.GOOS, runtime.GOARCH))
	program := unpack(t, archive, out)
	if text := run(t, nil, out, program, "--version"); !strings.Contains(text, "dragoman version") {
		t.Errorf("--version prints %q", text)
	}
	checkSums(t, out, 2)
	checkBOM(t, filepath.Join(out, "dragoman_"+version+"_sbom.spdx.json"))

	cache := strings.TrimSpace(run(t, nil, o.root, "go", "env", "GOMODCACHE"))
	env := []string{
		"GOPROXY=file://" + filepath.ToSlash(filepath.Join(out, "proxy")) + ",file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download")),
		"GOMODCACHE=" + filepath.Join(out, "mod"), "GOBIN=" + out, "GOSUMDB=off", "GOFLAGS=-modcacherw", "CGO_ENABLED=0",
	}
	run(t, env, out, "go", "install", modulePath+"/cmd/dragoman@"+version)
	if text := run(t, nil, out, filepath.Join(out, "dragoman"), "--version"); !strings.Contains(text, version) {
		t.Errorf("the installed command prints %q, want %s", text, version)
	}
}

// unpack writes the files of an archive to a folder and returns the path of the program.
func unpack(t *testing.T, archive, dir string) string {
	t.Helper()
	body, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "unpacked")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(zipped); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, head.Name)
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(head.Name)), content, os.FileMode(head.Mode)&0o777); err != nil { //nolint:gosec // our own archive
			t.Fatal(err)
		}
	}
	if got := strings.Join(names, " "); got != "dragoman LICENSE README.md" {
		t.Errorf("the archive has %s", got)
	}
	return filepath.Join(dir, "dragoman")
}

func checkSums(t *testing.T, dir string, want int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != want {
		t.Errorf("%d checksums, want %d", len(lines), want)
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || fmt.Sprintf("%x", sha256.Sum256(body)) != sum {
			t.Errorf("%s has another checksum: %v", name, err)
		}
	}
}

func checkBOM(t *testing.T, file string) {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc bom
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	names := map[string]bool{}
	for _, p := range doc.Packages {
		if ids[p.ID] {
			t.Errorf("%s is there twice", p.ID)
		}
		ids[p.ID], names[p.Name] = true, true
	}
	for _, want := range []string{modulePath, "std", "github.com/spf13/cobra", "modernc.org/sqlite"} {
		if !names[want] {
			t.Errorf("%s is missing", want)
		}
	}
	for _, r := range doc.Relationships {
		if !ids[r.To] {
			t.Errorf("unknown package %s", r.To)
		}
	}
}
