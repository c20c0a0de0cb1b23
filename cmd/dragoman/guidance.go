package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/skill"
)

// guidance holds the instructions that a folder has for models: AGENTS.md files and skills.
type guidance struct {
	// instructions is the text of the AGENTS.md files, and names are their paths.
	instructions string
	names        []string
	skills       *skill.Set
}

// guidanceFile is the file with instructions for agents that projects have.
const guidanceFile = "AGENTS.md"

// maxGuidance is the maximum size of all AGENTS.md files together, in bytes.
const maxGuidance = 64 << 10

// readGuidance reads the AGENTS.md files from the root of the repository down to dir, and finds
// the skills of dir, of the home folder and of the folders more. bare leaves out all but more.
// The notices say what cannot be used.
func readGuidance(dir string, bare bool, more []string) (g guidance, notices []string, err error) {
	if bare {
		g.skills, err = skill.Open(more...)
	} else {
		g.skills, err = skill.Find(dir, more...)
	}
	if err != nil {
		return g, nil, err
	}
	for _, p := range g.skills.Problems() {
		notices = append(notices, "Skill: "+p.Error())
	}
	if bare {
		return g, notices, nil
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return g, nil, err
	}
	var b strings.Builder
	for _, folder := range skill.Ancestors(full) {
		name := filepath.Join(folder, guidanceFile)
		text, err := readGuidanceFile(name, maxGuidance-b.Len())
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			notices = append(notices, fmt.Sprintf("%s is not used: %v", name, err))
		case text != "":
			fmt.Fprintf(&b, "Instructions of the project, from the file %s:\n\n%s\n\n", name, text)
			g.names = append(g.names, name)
		}
	}
	g.instructions = strings.TrimSpace(b.String())
	return g, notices, nil
}

// readGuidanceFile reads a file of at most limit bytes of text.
func readGuidanceFile(name string, limit int) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > limit:
		return "", fmt.Errorf("the files %s have more than %d KiB", guidanceFile, maxGuidance>>10)
	case !utf8.Valid(data):
		return "", errors.New("it is not UTF-8 text")
	}
	return strings.TrimSpace(string(data)), nil
}

// notice lists the files and skills that the run uses; "" if it uses none of them.
func (g *guidance) notice(dir string) string {
	var parts []string
	for _, name := range g.names {
		parts = append(parts, textkit.Visible(relative(dir, name)))
	}
	if n := len(g.skills.Tools()); n > 0 {
		count := 0
		for _, k := range g.skills.Skills() {
			if !k.Hidden {
				count++
			}
		}
		parts = append(parts, textkit.Count(count, "skill"))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("Using %s. To use neither, pass --bare.", strings.Join(parts, ", "))
}

// relative returns a path relative to dir if it is below it or a few folders above it.
func relative(dir, name string) string {
	full, err := filepath.Abs(dir)
	if err != nil {
		return name
	}
	if rel, err := filepath.Rel(full, name); err == nil && len(rel) < len(name) {
		return rel
	}
	return name
}

// prompt returns the instructions of an agent: those of the user, those of the folder, and the
// list of skills.
func (g *guidance) prompt(system string) string {
	text := strings.TrimSpace(system)
	if g.instructions != "" {
		if text != "" {
			text += "\n\n"
		}
		text += g.instructions
	}
	return strings.TrimSpace(text + g.skills.Instructions())
}

// readPaths lists the folders of skills, which commands may read.
func (g *guidance) readPaths() (out []string) {
	for _, k := range g.skills.Skills() {
		out = append(out, k.Folder)
	}
	return out
}
