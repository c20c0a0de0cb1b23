package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp/internal/catalog"
	"github.com/dragoman-go/dragoman/mcp/internal/peer"
)

// ErrSkill is wrapped by errors about skills whose content differs from what the server listed.
var ErrSkill = errors.New("mcp: the skill is not what its server listed")

// Skill is a skill that a server offers: a file SKILL.md with instructions, and the files that
// they use. Its texts are untrusted, and it permits nothing.
type Skill struct {
	Server string
	// URI is the resource of the file SKILL.md.
	URI, Name, Description string
	// FrontMatter is the front matter of SKILL.md as the server lists it.
	FrontMatter json.RawMessage
	// Files are all files of the skill, with SKILL.md.
	Files []SkillFile
	// JSON is the whole object of the server.
	JSON json.RawMessage
}

// SkillFile is a file of a skill.
type SkillFile struct {
	URI string `json:"uri"`
	// Digest is "sha256:" and the SHA-256 of the content in hexadecimal, and Size its length in
	// bytes.
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// The limits of a skill.
const (
	maxSkillFiles = 512
	maxSkillBytes = 16 << 20
)

var validDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Skills returns the skills of all servers that are ready and offer skills. It reads none of
// their files. The error joins those about servers whose list failed, and about skills that
// cannot be used; the others are returned with it.
func (s *Servers) Skills(ctx context.Context) (out []Skill, err error) {
	var bad []error
	err = s.each(ctx, peer.Skills, func(label string, raw json.RawMessage) {
		k, err := skillOf(label, raw)
		if err != nil {
			if len(bad) < maxNotes {
				bad = append(bad, fmt.Errorf("mcp: server %q: skill %q: %w", label, textkit.Visible(cutText(k.URI)), err))
			}
			return
		}
		out = append(out, k)
	})
	return out, errors.Join(append(bad, err)...)
}

// skillOf reads an entry of a list of skills.
func skillOf(label string, raw json.RawMessage) (Skill, error) {
	m := fieldsOf(raw)
	front := fieldsOf(m["frontmatter"])
	k := Skill{
		Server: label, URI: jsonwire.Unquote(m["uri"]), Name: jsonwire.Unquote(front["name"]), Description: jsonwire.Unquote(front["description"]),
		FrontMatter: m["frontmatter"], JSON: raw,
	}
	folder, file := path.Split(k.URI)
	switch {
	case file != "SKILL.md":
		return k, errors.New("its URI does not end with /SKILL.md")
	case k.Name == "" || path.Base(folder) != k.Name:
		return k, errors.New("the folder in its URI does not have its name")
	}
	if err := json.Unmarshal(m["resources"], &k.Files); err != nil {
		return k, errors.New("it has no list of files with digests, so nothing could be verified")
	}
	if len(k.Files) > maxSkillFiles {
		return k, fmt.Errorf("it has more than %d files", maxSkillFiles)
	}
	var size int64
	seen := map[string]bool{}
	for _, f := range k.Files {
		switch {
		case !strings.HasPrefix(f.URI, folder):
			return k, errors.New("one of its files is outside of its folder")
		case seen[f.URI]:
			return k, errors.New("one of its files is listed twice")
		case !validDigest.MatchString(f.Digest) || f.Size < 0 || f.Size > maxSkillBytes:
			return k, errors.New("one of its files has no valid digest or size")
		}
		seen[f.URI] = true
		size += f.Size
	}
	switch {
	case !seen[k.URI]:
		return k, errors.New("its list of files lacks SKILL.md")
	case size > maxSkillBytes:
		return k, fmt.Errorf("it is larger than %d bytes", maxSkillBytes)
	}
	return k, nil
}

// ReadSkill returns the content of a file of a skill by its URI. A content that differs from the
// size, the digest or the front matter of the list is an error that wraps [ErrSkill].
func (s *Servers) ReadSkill(ctx context.Context, k Skill, uri string) ([]byte, error) {
	var want *SkillFile
	for i := range k.Files {
		if k.Files[i].URI == uri {
			want = &k.Files[i]
		}
	}
	if want == nil {
		return nil, fmt.Errorf("mcp: the skill %q of server %q has no file %q", k.Name, k.Server, uri)
	}
	raw, err := s.request(ctx, k.Server, "resources/read", jsonwire.With([]byte("{}"), "uri", jsonwire.Quote(uri)))
	if err != nil {
		return nil, err
	}
	wrong := func(what string) error {
		return fmt.Errorf("%w: %s of %q of server %q differs; list the skills again", ErrSkill, what, uri, k.Server)
	}
	data, err := oneContent(raw, uri)
	if err != nil {
		return nil, fmt.Errorf("mcp: server %q: %q: %w", k.Server, uri, err)
	}
	if int64(len(data)) != want.Size {
		return nil, wrong("the size")
	}
	if sum := sha256.Sum256(data); "sha256:"+hex.EncodeToString(sum[:]) != want.Digest {
		return nil, wrong("the digest")
	}
	if uri == k.URI && !sameFrontMatter(data, k.FrontMatter) {
		return nil, wrong("the front matter")
	}
	return data, nil
}

// oneContent returns the only content of a result of resources/read.
func oneContent(raw json.RawMessage, uri string) ([]byte, error) {
	var result struct {
		Contents []struct {
			URI  string  `json:"uri"`
			Text *string `json:"text"`
			Blob *string `json:"blob"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, errors.New("its content cannot be read")
	}
	if len(result.Contents) != 1 || result.Contents[0].URI != uri {
		return nil, errors.New("the server did not send its content alone")
	}
	switch c := result.Contents[0]; {
	case c.Text != nil:
		return []byte(*c.Text), nil
	case c.Blob != nil:
		return base64.StdEncoding.DecodeString(*c.Blob)
	default:
		return nil, errors.New("it has no content")
	}
}

// sameFrontMatter reports whether SKILL.md has the front matter that the server listed.
func sameFrontMatter(data []byte, listed json.RawMessage) bool {
	front, _, ok := configfile.FrontMatter(data)
	if !ok {
		return false
	}
	root, wrong := configfile.Read(front)
	if len(wrong) > 0 || root == nil || root.Kind != configfile.Map {
		return false
	}
	var r configfile.Reader
	read, err := catalog.Canonical(r.JSON(root, "the front matter"))
	if err != nil || len(r.Errs) > 0 {
		return false
	}
	want, err := catalog.Canonical(listed)
	return err == nil && bytes.Equal(read, want)
}
