package skill

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// The names of the tools.
const (
	LoadName = "load_skill"
	ReadName = "read_skill_file"
)

// listed returns the skills that a model may load.
func (s *Set) listed() (out []*Skill) {
	for _, k := range s.Skills() {
		if !k.Hidden {
			out = append(out, k)
		}
	}
	return out
}

// Instructions returns a list of the skills for the instructions of a model, beginning with an
// empty line, or "" without skills. It depends only on the names and descriptions.
func (s *Set) Instructions() string {
	list := s.listed()
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n\nSkills are instructions for certain tasks. If a task matches the description of a skill, load the skill with %s before you begin, and follow it. Skills:\n", LoadName)
	for _, k := range list {
		fmt.Fprintf(&b, "- %s: %s\n", k.Name, k.Description)
	}
	return b.String()
}

// Tools returns the tools load_skill and read_skill_file, or nil without skills. The options
// apply to both.
func (s *Set) Tools(opts ...tool.Option) []tool.Tool {
	list := s.listed()
	if len(list) == 0 {
		return nil
	}
	byName := map[string]*Skill{}
	names := make([]string, len(list))
	for i, k := range list {
		byName[k.Name], names[i] = k, k.Name
	}
	of := func(name string) (*Skill, error) {
		if k := byName[name]; k != nil {
			return k, nil
		}
		return nil, fmt.Errorf("there is no skill %q: the skills are %s", cut(name, 2*maxName), strings.Join(names, ", "))
	}
	opts = append([]tool.Option{tool.ReadOnly(), tool.Idempotent(), tool.Set(func(s *tool.Settings) {
		s.Trusted = true // the user installed the folder, and its text is meant as instructions
		s.Tags = append(s.Tags, "skill")
	})}, opts...)
	load := tool.New(LoadName, "Load the instructions of a skill, and the list of its files.",
		func(_ context.Context, in loadInput) (string, error) {
			k, err := of(in.Name)
			if err != nil {
				return "", err
			}
			return k.text()
		}, opts...)
	read := tool.New(ReadName, "Read a file of a skill.",
		func(_ context.Context, in readInput) (tool.Output, error) {
			k, err := of(in.Skill)
			if err != nil {
				return tool.Output{}, err
			}
			data, err := k.Read(in.Path)
			if err != nil {
				return tool.Output{}, err
			}
			return output(in.Path, data), nil
		}, opts...)
	return []tool.Tool{load, read}
}

type loadInput struct {
	Name string `json:"name" doc:"the name of the skill"`
}

type readInput struct {
	Skill string `json:"skill" doc:"the name of the skill"`
	Path  string `json:"path" doc:"the path of the file in the skill's folder, such as \"references/forms.md\""`
}

// text returns the instructions of the skill for a model.
func (k *Skill) text() (string, error) {
	if _, err := k.Read(FileName); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Skill %s, in the folder %s. Paths in it are relative to that folder.\n\n%s\n", k.Name, k.Folder, k.body)
	if len(k.Files) > 1 {
		fmt.Fprintf(&b, "\nFiles of the skill, to read with %s:\n", ReadName)
		for _, f := range k.Files {
			if f.Path != FileName {
				fmt.Fprintf(&b, "- %s (%d bytes)\n", f.Path, f.Size)
			}
		}
	}
	return b.String(), nil
}

// output returns a file as text, as an image, or as a note about a file that a model cannot read.
func output(name string, data []byte) tool.Output {
	mime := http.DetectContentType(data)
	part := dragoman.Part(&dragoman.Text{Text: string(data)})
	switch {
	case slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mime):
		part = &dragoman.Media{Media: "image", MIME: mime, Base64: base64.StdEncoding.EncodeToString(data)}
	case !utf8.Valid(data) || slices.Contains(data, 0):
		part = &dragoman.Text{Text: fmt.Sprintf("%s is not a text: %s, %d bytes.", cut(name, 200), mime, len(data))}
	}
	return tool.Output{Content: []dragoman.Part{part}}
}
