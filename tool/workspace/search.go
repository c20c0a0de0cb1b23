package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

type searchInput struct {
	Pattern    string   `json:"pattern" doc:"the regular expression, in RE2 syntax (no look-around, no backreferences); it is matched against each line" jsonschema:"minLength=1,maxLength=1000"`
	Path       string   `json:"path,omitempty" doc:"a folder or file to search in; the workspace if left out"`
	Globs      []string `json:"globs,omitempty" doc:"search only files that match one of these, such as *.go or cmd/**/*.go; one that begins with ! leaves files out"`
	IgnoreCase bool     `json:"ignore_case,omitempty" doc:"upper and lower case are the same"`
	Context    int      `json:"context,omitempty" doc:"how many lines to show before and after each match" jsonschema:"minimum=0,maximum=10"`
	Limit      int      `json:"limit,omitempty" doc:"stop after so many lines that match; 100 by default" jsonschema:"minimum=1,maximum=1000"`
	All        bool     `json:"all,omitempty" doc:"also search what .gitignore leaves out, and folders such as .git"`
}

const (
	defaultMatches = 100
	// maxMatchLine is the maximum length of a line that is shown.
	maxMatchLine = 300
	maxPattern   = 1000
)

// Search returns the tool that searches files with a regular expression.
func (w *Workspace) Search(opts ...tool.Option) tool.Tool {
	return tool.New(toolname.SearchFiles, "Searches the text files of the workspace for a regular expression, line by line. "+
		"A match is shown as path:line: text, a line around it as path-line- text. "+
		"Binary files, very large files, and files that .gitignore files of the workspace exclude are not searched.", w.search, reads(opts)...)
}

func (w *Workspace) search(ctx context.Context, in searchInput) (string, error) {
	s, err := newSearch(w, in)
	if err != nil {
		return "", err
	}
	if in.Path == "" {
		in.Path = "."
	}
	rel, err := w.resolve(in.Path)
	if err != nil {
		return "", err
	}
	info, err := w.root.Stat(rel)
	if err != nil {
		return "", explain(in.Path, err)
	}
	v := walker{w: w, depth: 1 << 20, all: in.All, visit: s.visit}
	if info.IsDir() {
		err = v.walk(ctx, rel)
	} else if err = wantRegular(rel, info); err == nil {
		err = s.file(rel)
	}
	if err != nil && !errors.Is(err, errStop) {
		return "", err
	}
	return plain(s.head(&v) + s.out.String()), nil
}

// search is one running search.
type search struct {
	w             *Workspace
	re            *regexp.Regexp
	take, leave   []*regexp.Regexp
	context       int
	limit         int
	out           strings.Builder
	files         int
	matches       int
	binary, large int
	full          bool
}

func newSearch(w *Workspace, in searchInput) (*search, error) {
	s := &search{w: w, context: in.Context, limit: in.Limit}
	if s.limit <= 0 {
		s.limit = defaultMatches
	}
	if len(in.Pattern) > maxPattern {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", maxPattern)
	}
	pattern := in.Pattern
	if in.IgnoreCase {
		pattern = "(?i:" + pattern + ")"
	}
	var err error
	if s.re, err = regexp.Compile(pattern); err != nil {
		return nil, fmt.Errorf("the pattern is not a regular expression in RE2 syntax: %w", err)
	}
	for _, glob := range in.Globs {
		body, leave := strings.CutPrefix(glob, "!")
		if !strings.Contains(body, "/") {
			body = "**/" + body
		}
		re, err := globPattern(strings.TrimPrefix(body, "/"))
		if err != nil {
			return nil, fmt.Errorf("%s is not a valid pattern for paths", quoteShort(glob))
		}
		if leave {
			s.leave = append(s.leave, re)
		} else {
			s.take = append(s.take, re)
		}
	}
	return s, nil
}

// wanted reports whether the globs select a file.
func (s *search) wanted(rel string) bool {
	match := func(set []*regexp.Regexp) bool {
		for _, re := range set {
			if re.MatchString(rel) {
				return true
			}
		}
		return false
	}
	return (len(s.take) == 0 || match(s.take)) && !match(s.leave)
}

func (s *search) visit(rel string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() || !s.wanted(rel) {
		return nil
	}
	return s.file(rel)
}

// file searches one file. It skips a file that cannot be read.
func (s *search) file(rel string) error {
	data, _, err := s.w.load(rel)
	switch {
	case errors.Is(err, errTooLarge):
		s.large++
		return nil
	case err != nil:
		return nil //nolint:nilerr // deleted or not readable: continue with the other files
	case isBinary(data):
		s.binary++
		return nil
	}
	s.files++
	return s.lines(rel, data)
}

// lines writes the matches, each line once, with the lines around them.
func (s *search) lines(rel string, data []byte) error {
	all := bytes.Split(data, []byte("\n"))
	if len(all[len(all)-1]) == 0 {
		all = all[:len(all)-1]
	}
	written := 0 // lines before this one are written
	after := 0   // lines before this one belong to a match
	for i, line := range all {
		line = bytes.TrimSuffix(line, []byte("\r"))
		at := s.re.FindIndex(line)
		if at == nil {
			if i < after {
				s.line(rel, i, '-', line, 0)
				written = i + 1
			}
			continue
		}
		if s.matches == s.limit || s.out.Len() > maxShown {
			s.full = true
			return errStop
		}
		s.matches++
		from := max(written, i-s.context)
		if s.context > 0 && from > written && written > 0 {
			s.out.WriteString("--\n")
		}
		for j := from; j < i; j++ {
			s.line(rel, j, '-', all[j], 0)
		}
		s.line(rel, i, ':', line, at[0])
		written, after = i+1, i+1+s.context
	}
	return nil
}

// line writes one line, or the part of it around a byte.
func (s *search) line(rel string, i int, sep byte, line []byte, around int) {
	text := string(bytes.TrimSuffix(line, []byte("\r")))
	if len(text) > maxMatchLine {
		from := max(0, min(around-maxMatchLine/3, len(text)-maxMatchLine))
		text = plain(text[from:min(len(text), from+maxMatchLine)])
		if from > 0 {
			text = "…" + text
		}
		text += "…"
	}
	fmt.Fprintf(&s.out, "%s%c%d%c %s\n", shown(rel), sep, i+1, sep, text)
}

// head returns the line that describes what was searched and skipped.
func (s *search) head(v *walker) string {
	match := "match"
	if s.matches == 1 {
		match = "matches"
	}
	notes := []string{fmt.Sprintf("%s %s in %s searched", textkit.Count(s.matches, "line"), match, textkit.Count(s.files, "file"))}
	if s.full {
		notes = append(notes, "stopped there: narrow the pattern or the path, or raise limit")
	}
	if s.binary > 0 {
		notes = append(notes, textkit.Count(s.binary, "binary file")+" not searched")
	}
	if s.large > 0 {
		notes = append(notes, fmt.Sprintf("%s of more than %s not searched", textkit.Count(s.large, "file"), textkit.Count(s.w.options.MaxFile, "byte")))
	}
	if note := v.note(); note != "" {
		notes = append(notes, note)
	}
	return "[" + strings.Join(notes, "; ") + "]\n"
}
