package skill

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Set is a list of skills with unique names. A nil Set is empty. It is safe for concurrent use.
type Set struct {
	skills   []*Skill
	problems []Problem
}

// places are the folders with skills that people already have, below a project and below the
// home folder.
var places = []string{".agents/skills", ".claude/skills"}

// Find returns the skills for a folder. It looks, in this order, in
//   - the folders .agents/skills and .claude/skills of dir and of each folder above it, up to
//     the root of its repository,
//   - the same folders of the home folder,
//   - the folders more, which must exist.
//
// The first skill with a name counts. A skill that cannot be used is one of [Set.Problems]. Find
// fails if dir or a folder in more cannot be read.
func Find(dir string, more ...string) (*Set, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("skill: %w", err)
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("skill: %w", err)
	}
	var s Set
	bases := Ancestors(dir)
	slices.Reverse(bases) // the nearest first
	if home, err := os.UserHomeDir(); err == nil && !slices.Contains(bases, home) {
		bases = append(bases, home)
	}
	for _, base := range bases {
		for _, place := range places {
			if err := s.add(filepath.Join(base, filepath.FromSlash(place))); err != nil && !errors.Is(err, fs.ErrNotExist) {
				s.problems = append(s.problems, Problem{filepath.Join(base, filepath.FromSlash(place)), pathError(err)})
			}
		}
	}
	return s.addAll(more)
}

// Open returns the skills in the folders, each a skill itself or a folder of skills. The first
// skill with a name counts. Open fails if a folder cannot be read.
func Open(folders ...string) (*Set, error) { return new(Set).addAll(folders) }

func (s *Set) addAll(folders []string) (*Set, error) {
	for _, f := range folders {
		abs, err := filepath.Abs(f)
		if err == nil {
			err = s.add(abs)
		}
		if err != nil {
			return nil, fmt.Errorf("skill: %w", err)
		}
	}
	return s, nil
}

// Ancestors returns dir and the folders above it up to the root of its repository, the outermost
// first. Without a repository it returns only dir.
func Ancestors(dir string) []string {
	all := []string{dir}
	for at := dir; ; {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			slices.Reverse(all)
			return all
		}
		up := filepath.Dir(at)
		if up == at {
			return []string{dir}
		}
		all, at = append(all, up), up
	}
}

// add adds the skills of a folder.
func (s *Set) add(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == FileName }) {
		s.open(folder)
		return nil
	}
	for _, e := range entries {
		sub := filepath.Join(folder, e.Name())
		if info, err := os.Stat(sub); err != nil || !info.IsDir() { // a linked folder is fine: the user linked it
			continue
		}
		if _, err := os.Lstat(filepath.Join(sub, FileName)); err == nil {
			s.open(sub)
		}
	}
	return nil
}

// open adds the skill in a folder, or a problem.
func (s *Set) open(folder string) {
	k, err := load(folder)
	if err != nil {
		s.problems = append(s.problems, Problem{filepath.Join(folder, FileName), pathError(err)})
		return
	}
	if first := s.find(k.Name); first != nil {
		s.problems = append(s.problems, Problem{folder, fmt.Errorf("the skill %s of %s is used instead", k.Name, first.Folder)})
		return
	}
	if base := filepath.Base(folder); base != k.Name {
		s.problems = append(s.problems, Problem{folder, fmt.Errorf("the folder is named %q, but its skill %q", base, k.Name)})
	}
	s.skills = append(s.skills, k)
}

// load reads the skill in a folder.
func load(folder string) (*Skill, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only read
	manifest, err := readAll(root, FileName, maxManifest)
	if err != nil {
		return nil, err
	}
	k, err := parse(manifest, filepath.Base(folder))
	if err != nil {
		return nil, err
	}
	k.Folder = folder
	if k.Files, err = list(root); err != nil {
		return nil, err
	}
	for i, f := range k.Files {
		if f.Path == FileName { // of the bytes that were parsed
			k.Files[i] = File{FileName, int64(len(manifest)), digest(manifest)}
		}
	}
	whole := sha256.New()
	for _, f := range k.Files {
		fmt.Fprintf(whole, "%q %s\n", f.Path, f.Digest)
	}
	k.Digest = "sha256:" + hex.EncodeToString(whole.Sum(nil))
	return k, nil
}

// list returns the regular files of a folder. Links are not followed: what they lead to is not
// part of the skill.
func list(root *os.Root) (files []File, err error) {
	var total int64
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == ".git" || strings.Count(name, "/") >= maxDepth):
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		case len(files) == maxFiles:
			return fmt.Errorf("the skill has more than %d files", maxFiles)
		}
		data, err := readAll(root, name, maxBytes)
		if err != nil {
			return err
		}
		if total += int64(len(data)); total > maxBytes {
			return fmt.Errorf("the files of the skill have more than %d MiB", maxBytes>>20)
		}
		files = append(files, File{name, int64(len(data)), digest(data)})
		return nil
	})
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files, err
}

// readAll reads a regular file of at most limit bytes.
func readAll(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > limit:
		return nil, fmt.Errorf("%s has more than %d KiB", name, limit>>10)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d KiB", name, limit>>10)
	}
	return data, err
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// pathError returns the cause of an error about a path that the message names already.
func pathError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Skills returns the skills, in the order in which they were found.
func (s *Set) Skills() []*Skill {
	if s == nil {
		return nil
	}
	return slices.Clone(s.skills)
}

// Problems returns the skills and folders that cannot be used, and hints about the others.
func (s *Set) Problems() []Problem {
	if s == nil {
		return nil
	}
	return slices.Clone(s.problems)
}

// Only returns a Set with the skills that keep accepts, such as those whose pin matches.
func (s *Set) Only(keep func(*Skill) bool) *Set {
	if s == nil {
		return nil
	}
	out := &Set{problems: slices.Clone(s.problems)}
	for _, k := range s.skills {
		if keep(k) {
			out.skills = append(out.skills, k)
		}
	}
	return out
}

// find returns the skill with a name, or nil.
func (s *Set) find(name string) *Skill {
	for _, k := range s.skills {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// Read returns the content of a file of the skill. A file that was added or changed since the
// skill was found is an error, because its content was not accepted.
func (k *Skill) Read(name string) ([]byte, error) {
	clean := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	i := slices.IndexFunc(k.Files, func(f File) bool { return f.Path == clean })
	if i < 0 {
		return nil, fmt.Errorf("the skill %s has no file %q: it has %s", k.Name, cut(name, 200), k.fileNames())
	}
	root, err := os.OpenRoot(k.Folder)
	if err != nil {
		return nil, fmt.Errorf("the folder of the skill %s cannot be read: %w", k.Name, pathError(err))
	}
	defer func() { _ = root.Close() }() // only read
	data, err := readAll(root, clean, maxBytes)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the file %s of the skill %s cannot be read: %w", clean, k.Name, pathError(err))
	case digest(data) != k.Files[i].Digest:
		return nil, fmt.Errorf("the file %s of the skill %s has changed since the skill was found", clean, k.Name)
	}
	return data, nil
}

// fileNames lists the files for an error, shortened.
func (k *Skill) fileNames() string {
	const most = 20
	var names []string
	for _, f := range k.Files {
		if len(names) == most {
			names = append(names, fmt.Sprintf("and %d more", len(k.Files)-most))
			break
		}
		names = append(names, f.Path)
	}
	return strings.Join(names, ", ")
}
