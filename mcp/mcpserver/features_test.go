package mcpserver_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/mcp/mcpserver"
)

type skillSet struct {
	list  []mcpserver.Skill
	files map[string]string
}

func (s *skillSet) List(context.Context) ([]mcpserver.Skill, error) { return s.list, nil }

func (s *skillSet) Read(_ context.Context, uri string) (mcpserver.Content, error) {
	text, ok := s.files[uri]
	if !ok {
		return mcpserver.Content{}, mcpserver.ErrNoResource
	}
	return mcpserver.Content{Text: text, MIME: "text/markdown"}, nil
}

func TestSkillsAreListedWithTheDigestsOfTheirFiles(t *testing.T) {
	files := map[string]string{"SKILL.md": "---\nname: mail\n---\nWrite.", "examples/a.md": "Dear", "examples/deep/b.md": "Sir"}
	raw := map[string][]byte{}
	set := &skillSet{files: map[string]string{}}
	for name, text := range files {
		raw[name] = []byte(text)
		set.files["skill://mail/"+name] = text
	}
	set.list = []mcpserver.Skill{mcpserver.NewSkill("mail", json.RawMessage(`{"name":"mail","description":"Mails"}`), raw)}
	_, url := serve(t, mcpserver.Options{Skills: set})
	for _, revision := range []string{modern, legacy} {
		c := newClient(t, url, revision, nil)
		list := at[[]json.RawMessage](c.do("skills/list", nil).result, "skills")
		if len(list) != 1 {
			t.Fatalf("%s: %s", revision, list)
		}
		if got := at[json.RawMessage](c.do("skills/get", object{"uri": "skill://mail/SKILL.md"}).result, "skill"); string(got) != string(list[0]) {
			t.Errorf("%s differs from %s", got, list[0])
		}
		for _, f := range at[[]json.RawMessage](list[0], "resources") {
			uri := at[string](f, "uri")
			text := at[string](at[[]json.RawMessage](c.do("resources/read", object{"uri": uri}).result, "contents")[0], "text")
			sum := sha256.Sum256([]byte(text))
			if at[string](f, "digest") != "sha256:"+hex.EncodeToString(sum[:]) || at[int](f, "size") != len(text) {
				t.Errorf("%s is not the content of %s", f, uri)
			}
		}
		var names []string
		for _, e := range at[[]json.RawMessage](c.do("resources/directory/read", object{"uri": "skill://mail/examples"}).result, "resources") {
			names = append(names, at[string](e, "name")+" "+at[string](e, "mimeType"))
		}
		if got := strings.Join(names, ", "); got != "a.md text/markdown, deep inode/directory" {
			t.Errorf("the folder has %s", got)
		}
		for method, uri := range map[string]string{"skills/get": "skill://other/SKILL.md", "resources/directory/read": "skill://mail/SKILL.md"} {
			if r := c.do(method, object{"uri": uri}); r.code != -32602 {
				t.Errorf("%s %s: %d %s", method, uri, r.code, r.result)
			}
		}
	}
	_, url = serve(t, mcpserver.Options{})
	if r := newClient(t, url, modern, nil).do("skills/list", nil); r.code != -32601 {
		t.Errorf("a server without skills: %d", r.code)
	}
}

func TestPromptsAndCompletionsReachTheClient(t *testing.T) {
	prompt := mcpserver.Prompt{
		Name: "review", Title: "Review", Arguments: []mcpserver.PromptArgument{{Name: "lang", Required: true}},
		Get: func(ctx context.Context, args map[string]string) ([]mcpserver.PromptMessage, error) {
			a, err := mcpserver.Ask(ctx, map[string]mcpserver.Question{"who": mcpserver.Form("Who?", json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}`))})
			return []mcpserver.PromptMessage{{Text: "Review " + args["lang"] + " for " + at[string](a["who"], "content", "n")}}, err
		},
	}
	var values []string
	for i := range 150 {
		values = append(values, fmt.Sprint(i))
	}
	_, url := serve(t, mcpserver.Options{Prompts: []mcpserver.Prompt{prompt}, Complete: func(_ context.Context, q mcpserver.Completion) ([]string, error) {
		if q.Prompt != "review" || q.Argument != "lang" || q.Value != "g" || q.Arguments["x"] != "1" {
			t.Errorf("asked %+v", q)
		}
		return values, nil
	}})
	for _, revision := range []string{modern, legacy} {
		c := newClient(t, url, revision, forms)
		answer := object{"action": "accept", "content": object{"n": "Ann"}}
		c.answer = func(string, json.RawMessage) any { return answer }
		params := object{"name": "review", "arguments": object{"lang": "Go"}}
		r := c.do("prompts/get", params)
		if revision == modern {
			params["inputResponses"], params["requestState"] = object{"who": answer}, r.state()
			if other := newClient(t, url, modern, forms).do("prompts/get", object{"name": "review", "arguments": object{"lang": "C"}, "requestState": r.state(), "inputResponses": params["inputResponses"]}); other.code != -32602 {
				t.Errorf("other arguments: %d %s", other.code, other.result)
			}
			r = c.do("prompts/get", params)
		}
		if !strings.Contains(string(r.result), "Review Go for Ann") {
			t.Errorf("%s: %d %s %s", revision, r.code, r.text, r.result)
		}
		if r := c.do("prompts/get", object{"name": "review"}); r.code != -32602 {
			t.Errorf("without an argument: %d", r.code)
		}
		r = c.do("completion/complete", object{"ref": object{"type": "ref/prompt", "name": "review"}, "argument": object{"name": "lang", "value": "g"}, "context": object{"arguments": object{"x": "1"}}})
		if got := at[[]string](r.result, "completion", "values"); len(got) != 100 || !at[bool](r.result, "completion", "hasMore") || at[int](r.result, "completion", "total") != 150 {
			t.Errorf("%s", r.result)
		}
	}
}
