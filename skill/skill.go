package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// FileName is the name of the file that makes a folder a skill.
const FileName = "SKILL.md"

// Skill is one skill. It must not be changed.
type Skill struct {
	// Name identifies the skill: lower-case letters, digits and hyphens.
	Name string
	// Description says what the skill is for and when to use it.
	Description string
	// License, Compatibility and AllowedTools are optional information for people.
	License, Compatibility string
	AllowedTools           []string
	// Hidden skills are not listed in the instructions and cannot be loaded by a model: their
	// front matter sets disable-model-invocation.
	Hidden bool
	// FrontMatter is the whole front matter as JSON, fields that this package does not know
	// included.
	FrontMatter json.RawMessage
	// Folder is the absolute path of the folder.
	Folder string
	// Files lists the files of the folder, sorted by path, SKILL.md included.
	Files []File
	// Digest changes if the path or the content of any file changes.
	Digest string

	// body is the text of SKILL.md after the front matter.
	body string
}

// File is a file of a skill.
type File struct {
	// Path is relative to the folder, separated by slashes.
	Path string
	Size int64
	// Digest is "sha256:" and the SHA-256 of the content in hexadecimal.
	Digest string
}

// Problem is a folder, a skill or a file that cannot be used, or only in part.
type Problem struct {
	// Path is the folder or file.
	Path string
	Err  error
}

func (p Problem) Error() string { return fmt.Sprintf("%s: %v", p.Path, p.Err) }

// Unwrap returns Err.
func (p Problem) Unwrap() error { return p.Err }

// The limits of a skill.
const (
	maxName        = 64
	maxDescription = 1024
	maxManifest    = 512 << 10
	maxFiles       = 512
	maxBytes       = 16 << 20
	maxDepth       = 16
)

var validName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

var errFrontMatter = errors.New("has no front matter: begin the file with a line \"---\", the fields name and description, and another line \"---\"")

// parse reads SKILL.md. folder is the name of the folder, which is the name of a skill that sets
// none.
func parse(data []byte, folder string) (*Skill, error) {
	front, body, ok := configfile.FrontMatter(data)
	if !ok {
		return nil, errFrontMatter
	}
	root, wrong := configfile.Read(front)
	switch {
	case len(wrong) > 0: // the front matter begins on line 2
		return nil, fmt.Errorf("line %d: %s", wrong[0].Line+1, wrong[0].Reason)
	case root == nil || root.Kind != configfile.Map:
		return nil, errors.New("the front matter is not a list of fields such as \"name: value\"")
	}
	s := &Skill{Name: folder, body: strings.TrimSpace(string(body))}
	var r configfile.Reader
	for i, key := range root.Keys {
		n := root.Items[i]
		switch key.Text {
		case "name":
			s.Name = r.String(n, "name")
		case "description":
			s.Description = strings.Join(strings.Fields(r.String(n, "description")), " ")
		case "license":
			s.License = r.String(n, "license")
		case "compatibility":
			s.Compatibility = r.String(n, "compatibility")
		case "allowed-tools":
			for _, text := range r.Strings(n, "allowed-tools") {
				s.AllowedTools = append(s.AllowedTools, tools(text)...)
			}
		case "disable-model-invocation":
			s.Hidden = r.Bool(n, "disable-model-invocation")
		}
	}
	s.FrontMatter = r.JSON(root, "the front matter")
	if len(r.Errs) > 0 {
		return nil, fmt.Errorf("line %d: %s", r.Errs[0].Line+1, r.Errs[0].Reason)
	}
	return s, s.check()
}

// check returns an error for a skill that cannot be listed.
func (s *Skill) check() error {
	switch {
	case len(s.Name) > maxName || !validName.MatchString(s.Name):
		return fmt.Errorf("the name %q is not valid: use lower-case letters, digits and single hyphens, at most %d characters", textkit.Visible(cut(s.Name, 2*maxName)), maxName)
	case s.Description == "":
		return errors.New("the front matter has no description: say what the skill does and when to use it")
	case len([]rune(s.Description)) > maxDescription:
		return fmt.Errorf("the description has more than %d characters", maxDescription)
	}
	if err := textkit.CheckDescription(s.Description); err != nil {
		return fmt.Errorf("the description is not valid: %w", err)
	}
	return nil
}

// tools splits a list of tools at spaces and commas outside of parentheses, as in
// "Bash(git add:*) Read".
func tools(list string) (out []string) {
	depth, start := 0, -1
	for i, r := range list + " " {
		switch {
		case depth == 0 && (r == ' ' || r == ',' || r == '\t' || r == '\n'):
			if start >= 0 {
				out = append(out, list[start:i])
			}
			start = -1
			continue
		case r == '(':
			depth++
		case r == ')' && depth > 0:
			depth--
		}
		if start < 0 {
			start = i
		}
	}
	if start >= 0 { // an open parenthesis
		out = append(out, strings.TrimSpace(list[start:]))
	}
	return out
}

// cut returns at most n bytes of s, in whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
