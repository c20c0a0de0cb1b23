package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/mcp/mcpserver"
)

// oneSkill serves a skill, and records what is read.
type oneSkill struct {
	mu    sync.Mutex
	list  mcpserver.Skill
	files map[string]string
	read  []string
}

func (s *oneSkill) List(context.Context) ([]mcpserver.Skill, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []mcpserver.Skill{s.list}, nil
}

func (s *oneSkill) Read(_ context.Context, uri string) (mcpserver.Content, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = append(s.read, uri)
	text, ok := s.files[uri]
	if !ok {
		return mcpserver.Content{}, mcpserver.ErrNoResource
	}
	return mcpserver.Content{URI: uri, MIME: "text/markdown", Text: text}, nil
}

const (
	manifestURI = "skill://refunds/SKILL.md"
	manifest    = "---\nname: refunds\ndescription: Process refunds\n---\n\nRead mail.md.\n"
	mailURI     = "skill://refunds/mail.md"
	mail        = "Dear customer,\n"
)

func serveSkill(t *testing.T, revision string) (*oneSkill, *mcp.Servers) {
	t.Helper()
	s := &oneSkill{files: map[string]string{manifestURI: manifest, mailURI: mail}}
	s.list = mcpserver.NewSkill("refunds", json.RawMessage(`{"description":"Process refunds","name":"refunds"}`),
		map[string][]byte{"SKILL.md": []byte(manifest), "mail.md": []byte(mail)})
	server, err := mcpserver.New(mcpserver.Options{Name: "skills", Version: "1", Skills: s})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server.Handler())
	t.Cleanup(web.CloseClientConnections)
	t.Cleanup(web.Close)
	m := mcp.HTTP(web.URL).As("shop")
	m.Revision = revision
	return s, connect(t, mcp.Options{}, m)
}

func TestM6_SkillsOfAServerAreListedWithoutReadingThemAndVerifiedWhenRead(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			s, servers := serveSkill(t, revision)
			skills, err := servers.Skills(t.Context())
			if err != nil || len(skills) != 1 {
				t.Fatalf("%v, %v", skills, err)
			}
			k := skills[0]
			if k.Server != "shop" || k.URI != manifestURI || k.Name != "refunds" || k.Description != "Process refunds" || len(k.Files) != 2 {
				t.Errorf("skill %+v", k)
			}
			if len(s.read) > 0 {
				t.Errorf("listing has read %q", s.read)
			}
			for uri, want := range s.files {
				if got, err := servers.ReadSkill(t.Context(), k, uri); err != nil || string(got) != want {
					t.Errorf("%s: %q, %v", uri, got, err)
				}
			}
			if _, err := servers.ReadSkill(t.Context(), k, "skill://refunds/other.md"); err == nil || errors.Is(err, mcp.ErrSkill) {
				t.Errorf("a file that is not listed: %v", err)
			}
			if len(s.read) != 2 {
				t.Errorf("read %q", s.read)
			}
		})
	}
}

func TestM6_ContentThatDiffersFromTheListIsRefused(t *testing.T) {
	for name, change := range map[string]func(s *oneSkill){
		"the digest": func(s *oneSkill) { s.files[manifestURI] = strings.Replace(manifest, "Read", "Send", 1) },
		"the size":   func(s *oneSkill) { s.files[manifestURI] += "More.\n" },
		"the front matter": func(s *oneSkill) {
			changed := strings.Replace(manifest, "Process refunds", "Send secrets", 1)
			s.files[manifestURI] = changed
			s.list = mcpserver.NewSkill("refunds", s.list.Frontmatter, map[string][]byte{"SKILL.md": []byte(changed)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, servers := serveSkill(t, "")
			s.mu.Lock()
			change(s)
			s.mu.Unlock()
			skills, err := servers.Skills(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got, err := servers.ReadSkill(t.Context(), skills[0], manifestURI); !errors.Is(err, mcp.ErrSkill) || !strings.Contains(err.Error(), name) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestM6_InvalidSkillsOfAServerDoNotHideTheOthers(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	entry := func(uri, name, files string) string {
		return fmt.Sprintf(`{"uri":%q,"frontmatter":{"name":%q,"description":"D"},"resources":%s}`, uri, name, files)
	}
	file := func(uri string) string { return fmt.Sprintf(`{"uri":%q,"digest":%q,"size":1}`, uri, digest) }
	many := make([]string, 513)
	for i := range many {
		many[i] = file(fmt.Sprintf("skill://x/%d", i))
	}
	entries := []string{
		entry("skill://other/SKILL.md", "name", "["+file("skill://other/SKILL.md")+"]"),
		entry("skill://readme/README.md", "readme", "["+file("skill://readme/README.md")+"]"),
		entry("skill://x/SKILL.md", "x", `"dynamic"`),
		entry("skill://x/SKILL.md", "x", "["+file("skill://x/more.md")+"]"),
		entry("skill://x/SKILL.md", "x", "["+file("skill://x/SKILL.md")+","+file("skill://y/SKILL.md")+"]"),
		entry("skill://x/SKILL.md", "x", "["+file("skill://x/SKILL.md")+","+file("skill://x/SKILL.md")+"]"),
		entry("skill://x/SKILL.md", "x", `[{"uri":"skill://x/SKILL.md","digest":"md5:0","size":1}]`),
		entry("skill://x/SKILL.md", "x", "["+strings.Join(many, ",")+"]"),
	}
	good := entry("skill://good/SKILL.md", "good", "["+file("skill://good/SKILL.md")+"]")
	server := rawServer(t, func(_ http.ResponseWriter, _ *http.Request, method string, _ map[string]json.RawMessage) string {
		return map[string]string{
			"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}},"ttlMs":0,"cacheScope":"private"}`,
			"skills/list":     `{"resultType":"complete","skills":[` + strings.Join(append(entries, good), ",") + `],"ttlMs":0,"cacheScope":"private"}`,
		}[method]
	})
	skills, err := connect(t, mcp.Options{}, server).Skills(t.Context())
	if len(skills) != 1 || skills[0].Name != "good" {
		t.Errorf("skills %+v", skills)
	}
	if err == nil || strings.Count(err.Error(), `server "hostile"`) != len(entries) {
		t.Errorf("%v", err)
	}
}
