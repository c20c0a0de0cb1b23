package workspace

import (
	"path"
	"regexp"
	"strings"
)

// ignoreRule is a line of a .gitignore.
type ignoreRule struct {
	// base is the directory that contains the .gitignore file. Patterns are relative to it.
	base    string
	match   *regexp.Regexp
	negated bool
	dirs    bool
}

const maxIgnoreFile = 64 << 10

// parseIgnore parses a .gitignore file. It skips lines that are not patterns, as git does.
func parseIgnore(base, text string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimRight(line, " "); !strings.HasSuffix(trimmed, `\`) {
			line = trimmed
		}
		if line == "" || line[0] == '#' {
			continue
		}
		r := ignoreRule{base: base}
		line, r.negated = strings.CutPrefix(line, "!")
		line, r.dirs = strings.CutSuffix(line, "/")
		anchored := strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if line == "" {
			continue
		}
		if !anchored {
			line = "**/" + line
		}
		var err error
		if r.match, err = globPattern(line); err == nil {
			rules = append(rules, r)
		}
	}
	return rules
}

// ignored reports whether the last matching rule ignores the file.
func ignored(rules []ignoreRule, rel string, isDir bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		r := &rules[i]
		below := rel
		if r.base != "." {
			var ok bool
			if below, ok = strings.CutPrefix(rel, r.base+"/"); !ok {
				continue
			}
		}
		if (isDir || !r.dirs) && r.match.MatchString(below) {
			return !r.negated
		}
	}
	return false
}

// ignoreRules returns the rules of a directory and of all its parents.
func (w *Workspace) ignoreRules(rel string) []ignoreRule {
	var rules []ignoreRule
	if rel != "." {
		rules = w.ignoreRules(path.Dir(rel))
	}
	return w.withIgnoreFile(rules, rel)
}

// withIgnoreFile adds the rules of the .gitignore file of a directory.
func (w *Workspace) withIgnoreFile(rules []ignoreRule, dir string) []ignoreRule {
	f, info, err := w.open(path.Join(dir, ".gitignore"))
	if err != nil {
		return rules
	}
	defer closeQuietly(f)
	if info.Size() > maxIgnoreFile {
		return rules
	}
	data, err := w.readAll(f, dir)
	if err != nil {
		return rules
	}
	return append(rules[:len(rules):len(rules)], parseIgnore(dir, string(data))...)
}

// globPattern converts a glob for paths to a regular expression: * and ? match within a name,
// ** crosses directories, [ab] is a set.
func globPattern(glob string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`\A`)
	for i := 0; i < len(glob); i++ {
		rest := glob[i:]
		switch {
		case strings.HasPrefix(rest, "**/") && (i == 0 || glob[i-1] == '/'):
			b.WriteString(`(?:.*/)?`)
			i += 2
		case rest == "**" && i > 0 && glob[i-1] == '/':
			b.WriteString(`.+`)
			i++
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
		case rest[0] == '?':
			b.WriteString(`[^/]`)
		case rest[0] == '[':
			n := writeSet(&b, rest)
			i += n - 1
		case rest[0] == '\\' && len(rest) > 1:
			i++
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	b.WriteString(`\z`)
	return regexp.Compile(`(?s)` + b.String())
}

// writeSet writes a set such as [a-z] or [!ab] and returns its length in bytes.
func writeSet(b *strings.Builder, s string) int {
	end := strings.IndexByte(s[1:], ']')
	if end <= 0 {
		b.WriteString(`\[`)
		return 1
	}
	body := s[1 : end+1]
	b.WriteByte('[')
	if body[0] == '!' || body[0] == '^' {
		b.WriteString(`^/`)
		body = body[1:]
	}
	for _, r := range body {
		if r == '[' || r == '\\' || r == '^' || r == '&' || r == ':' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	b.WriteByte(']')
	return end + 2
}
