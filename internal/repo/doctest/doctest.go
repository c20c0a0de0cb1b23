// Package doctest reads the code blocks of Markdown pages, so that a test can run them.
//
// The word after the language says what happens to a block:
//
//   - "sh": the commands are run. All such blocks of a page are one bash session in an empty
//     folder, which stops at the first command that fails.
//   - "text" directly after an "sh" block: the expected output of that block, standard output
//     and standard error together. A line "…" matches any lines, and "…" in a line any text.
//   - "go main.go", "yaml gateway.yaml": the block is written to that file of the folder.
//   - "go" without a file: a fragment. Its lines must be in a Go file of the repository.
//   - "sh skip (reason)", "go skip (reason)": neither run nor searched for.
//
// Blocks in other languages are ignored. When a page runs, the ports that it listens on
// (listen: 127.0.0.1:8088) are replaced by free ones, everywhere in its blocks.
package doctest

import (
	"fmt"
	"regexp"
	"strings"
)

// Block is a fenced code block of a page.
type Block struct {
	// Language is the first word after the fence, and Info the rest of the line.
	Language, Info string
	Text           string
	// Line is the line of the fence.
	Line int
	// Want is the expected output of a block that is run; nil means any.
	Want *string
}

// File returns the name of the file that the block is written to, or "".
func (b *Block) File() string {
	if b.Language == "sh" || b.Language == "text" || !fileName.MatchString(b.Info) {
		return ""
	}
	return b.Info
}

var fileName = regexp.MustCompile(`^[\w-]+(/[\w-]+)*\.\w+$`)

// Runs reports whether the block is run.
func (b *Block) Runs() bool { return b.Language == "sh" && b.Info == "" }

// Fragment reports whether the block is Go code that the repository must contain.
func (b *Block) Fragment() bool { return b.Language == "go" && b.Info == "" }

// Parse returns the blocks of a page in order. It returns an error for a fence without an end,
// and for an info string that no rule knows.
func Parse(page string) ([]*Block, error) {
	var blocks []*Block
	var open *Block
	var fence string
	var last *Block // the block that ended just before the current line
	var text []string
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case open != nil && trimmed == fence:
			open.Text = strings.Join(text, "\n")
			if open.Language == "text" && last != nil && last.Runs() {
				want := open.Text
				last.Want = &want
			}
			blocks = append(blocks, open)
			last, open = open, nil
		case open != nil:
			text = append(text, line)
		case strings.HasPrefix(trimmed, "```"):
			info := strings.TrimLeft(trimmed, "`")
			fence = strings.Repeat("`", len(trimmed)-len(info))
			language, rest, _ := strings.Cut(strings.TrimSpace(info), " ")
			open = &Block{Language: language, Info: strings.TrimSpace(rest), Line: i + 1}
			text = nil
			if err := open.check(); err != nil {
				return nil, err
			}
		case trimmed != "":
			last = nil
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the code block has no end", open.Line)
	}
	return blocks, nil
}

var skipped = regexp.MustCompile(`^skip \(.+\)$`)

func (b *Block) check() error {
	switch {
	case b.Info == "", b.File() != "", skipped.MatchString(b.Info):
		return nil
	case b.Language == "sh":
		return fmt.Errorf("line %d: %q after sh: want nothing, or skip (reason)", b.Line, b.Info)
	}
	return fmt.Errorf("line %d: %q after %s: want nothing, a file name, or skip (reason)", b.Line, b.Info, b.Language)
}

// Compare returns an error if an output is not the expected one. Spaces at the ends of lines
// and of the text do not count.
func Compare(want, got string) error {
	w, g := lines(want), lines(got)
	if !matchLines(w, g) {
		return fmt.Errorf("got\n%s\nwant\n%s", strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
	return nil
}

func lines(text string) []string {
	list := strings.Split(strings.TrimSpace(text), "\n")
	for i := range list {
		list[i] = strings.TrimRight(list[i], " \t\r")
	}
	return list
}

func matchLines(want, got []string) bool {
	for len(want) > 0 {
		if want[0] == "…" {
			for skip := 0; skip <= len(got); skip++ {
				if matchLines(want[1:], got[skip:]) {
					return true
				}
			}
			return false
		}
		if len(got) == 0 || !matchLine(want[0], got[0]) {
			return false
		}
		want, got = want[1:], got[1:]
	}
	return len(got) == 0
}

func matchLine(want, got string) bool {
	parts := strings.Split(want, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(got)
}

// Contains reports whether a Go file has the lines of a fragment one after the other, apart
// from indentation and blank lines.
func Contains(file, fragment string) bool {
	return strings.Contains("\n"+dense(file)+"\n", "\n"+dense(fragment)+"\n")
}

func dense(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
