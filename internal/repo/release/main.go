// Release builds what a release of Dragoman publishes: an archive of the command for each
// system, their SHA-256 checksums, and a software bill of materials (SPDX 2.3).
//
//	go run ./internal/repo/release -version v0.2.0
//
// The working tree must be clean and its commit must have the tag. With -snapshot neither is
// checked, to try a build. The same commit and Go version give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// defaultTargets are the systems that get an archive.
const defaultTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,freebsd/amd64"

// modulePath is the path of this module, and command that of its program.
const (
	modulePath = "github.com/dragoman-go/dragoman"
	command    = "dragoman"
)

// options say what to build.
type options struct {
	root     string // the root of the repository
	version  string // such as v0.2.0
	out      string // the folder that gets the files
	targets  []string
	snapshot bool
	proxy    bool // also write the module as a file proxy has it
}

func main() {
	var o options
	var targets string
	flag.StringVar(&o.version, "version", "", "version to release, such as v0.2.0; the commit must have this tag")
	flag.StringVar(&o.out, "out", "dist", "folder to write to")
	flag.StringVar(&targets, "targets", defaultTargets, "systems to build for, as GOOS/GOARCH with commas between them")
	flag.BoolVar(&o.snapshot, "snapshot", false, "build without a tag, from a tree that may have changes")
	flag.BoolVar(&o.proxy, "proxy", false, "also write the module to OUT/proxy, for GOPROXY=file://OUT/proxy")
	flag.Parse()
	o.root, o.targets = ".", strings.Split(targets, ",")
	if err := release(o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release writes all files of a release. It removes none that are there.
func release(o options) error {
	if !strings.HasPrefix(o.version, "v") {
		return fmt.Errorf("version %q does not begin with v: pass -version v0.2.0", o.version)
	}
	if !o.snapshot {
		if err := checkTag(o); err != nil {
			return err
		}
	}
	made, err := commitTime(o.root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	var files []string
	for _, target := range o.targets {
		goos, goarch, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("target %q is not GOOS/GOARCH", target)
		}
		file, err := buildArchive(o, goos, goarch, made)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		files = append(files, file)
	}
	bom, err := writeBOM(o, made)
	if err != nil {
		return fmt.Errorf("bill of materials: %w", err)
	}
	files = append(files, bom)
	if o.proxy {
		if err := writeProxy(o, made); err != nil {
			return fmt.Errorf("module proxy: %w", err)
		}
	}
	return writeChecksums(o.out, files)
}

// checkTag reports a tree that is not the tagged version.
func checkTag(o options) error {
	changes, err := git(o.root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		return errors.New("the working tree has changes: commit them, or pass -snapshot")
	}
	tags, err := git(o.root, "tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	for _, tag := range strings.Fields(tags) {
		if tag == o.version {
			return nil
		}
	}
	return fmt.Errorf("the commit does not have the tag %s: run git tag %s, or pass -snapshot", o.version, o.version)
}

// commitTime returns the time of the last commit, which dates all files.
func commitTime(root string) (time.Time, error) {
	text, err := git(root, "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func git(root string, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// build compiles the command without cgo and returns the path of the program.
func build(o options, goos, goarch string) (string, error) {
	out, err := filepath.Abs(filepath.Join(o.out, goos+"_"+goarch, command))
	if err != nil {
		return "", err
	}
	if goos == "windows" {
		out += ".exe"
	}
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./cmd/"+command)
	cmd.Dir = o.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, text)
	}
	return out, nil
}
