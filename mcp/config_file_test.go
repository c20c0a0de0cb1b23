package mcp

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// withoutSource returns the public fields of servers.
func withoutSource(servers []Server) []Server {
	for i := range servers {
		servers[i] = emptyToNil(servers[i])
		servers[i].source = nil
	}
	return servers
}

func TestConfigFormsGiveTheSameServers(t *testing.T) {
	want := []Server{
		{Name: "files", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/data"}, Env: map[string]string{"TOKEN": "t0k"}},
		{Name: "web", URL: "https://example.com/mcp", Headers: map[string]string{"Authorization": "Bearer t0k"}},
	}
	for name, text := range map[string]string{
		"Claude Desktop": `{"mcpServers": {
			"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "${ROOT:-/data}"], "env": {"TOKEN": "${TOKEN}"}},
			"web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}`,
		"Claude Code": `{"mcpServers": {
			"files": {"type": "stdio", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"], "env": {"TOKEN": "${TOKEN:-none}"}},
			"web": {"type": "sse", "url": "https://${HOST:-example.com}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}`,
		"Cursor": `{"mcpServers": {
			"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"], "env": {"TOKEN": "${env:TOKEN}"}},
			"web": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}}}}`,
		"Windsurf and Gemini": `{"mcpServers": {
			"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"], "env": {"TOKEN": "t0k"}},
			"web": {"httpUrl": "https://example.com/mcp", "headers": {"Authorization": "Bearer t0k"}}}}`,
		"VS Code": `{
			// servers of this project
			"inputs": [{"type": "promptString", "id": "api-token", "description": "Token", "password": true},],
			"servers": {
				"files": {"type": "stdio", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data",], "env": {"TOKEN": "${input:api-token}"}},
				/* the web */
				"web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${input:api-token}"}},
			},
		}`,
		"VS Code settings": `{"editor.fontSize": 12, "mcp": {"inputs": [{"id": "t", "default": "t0k"}], "servers": {
			"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"], "env": {"TOKEN": "${input:t}"}},
			"web": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${input:t}"}}}}}`,
		"our YAML": "# our servers\nversion: 1\nmcp_servers:\n  files:\n    command: npx\n    args: [-y, '@modelcontextprotocol/server-filesystem', /data]\n    env:\n      TOKEN: ${TOKEN}\n" +
			"  web:\n    url: https://example.com/mcp\n    headers: {Authorization: 'Bearer ${TOKEN}'}\n",
		"our JSON": `{"mcp_servers": {"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"], "env": {"TOKEN": "${TOKEN}"}},
			"web": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := ParseConfig("f", []byte(text), env("TOKEN", "t0k", "INPUT_API_TOKEN", "t0k"))
			if err != nil || len(warnings) > 0 {
				t.Fatalf("err %v, warnings %v", err, warnings)
			}
			if got = withoutSource(got); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestOwnFormHasEverySetting(t *testing.T) {
	text := `mcp_servers:
  gh:
    command: gh-mcp
    dir: /tmp
    include: ["read_*"]
    exclude: ["*_all"]
    prefix: true
    namespace: github
    deferred: true
    approval: {"read_*": never, "*": always}
    trusted: true
    retry: ["get_*"]
    connect_timeout: 5s
    call_timeout: 2m
    max_call_time: 1h
    parallel: 4
    revision: "2025-11-25"
    disabled: true
`
	got, warnings, err := ParseConfig("f.yaml", []byte(text), nil)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("err %v, warnings %v", err, warnings)
	}
	want := Server{
		Name: "gh", Command: "gh-mcp", Dir: "/tmp", Include: []string{"read_*"}, Exclude: []string{"*_all"}, Prefix: true, Namespace: "github", Deferred: true,
		Approval: map[string]string{"read_*": "never", "*": "always"}, Trusted: true, Retry: []string{"get_*"},
		ConnectTimeout: 5 * time.Second, CallTimeout: 2 * time.Minute, MaxCallTime: time.Hour, Parallel: 4, Revision: "2025-11-25", Disabled: true,
	}
	if !reflect.DeepEqual(withoutSource(got), []Server{want}) {
		t.Errorf("got  %+v\nwant %+v", got[0], want)
	}
	// Every setting can be written, too. URL and the like belong to the other kind of server.
	for _, s := range []Server{want, {Name: "web", URL: "https://example.com", Headers: map[string]string{"A": "b"}}, {Name: "e", Command: "e", Args: []string{"-x", "a b: {}"}, Env: map[string]string{"K": "#v"}}} {
		out, err := addServer("f.yaml", []byte("version: 1\n"), s)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := ParseConfig("f.yaml", out, nil)
		if err != nil || !reflect.DeepEqual(withoutSource(back), []Server{s}) {
			t.Errorf("wrote %+v\nread  %+v, %v\n%s", s, back, err, out)
		}
	}
	for i := range reflect.TypeFor[Server]().NumField() {
		f := reflect.TypeFor[Server]().Field(i)
		if v := reflect.ValueOf(want).Field(i); f.IsExported() && v.IsZero() && !slices.Contains([]string{"Args", "Env", "URL", "Headers"}, f.Name) {
			t.Errorf("the setting %s has no field in files, or this test does not set it", f.Name)
		}
	}
}

func TestConfigProblemsNameFileLineAndServer(t *testing.T) {
	const secret = "hunter2-s3cr3t"
	for _, c := range []struct{ name, text, want string }{
		{"missing variable", "{\"mcpServers\": {\n\"a\": {\"command\": \"x\",\n\"env\": {\"K\": \"" + secret + "${NOPE}\"}}}}", `f:3: server "a": env.K: the environment variable NOPE is not set: set it, or write ${NOPE:-default}`},
		{"missing input", "{\"inputs\": [{\"id\": \"my key\"}],\n\"servers\": {\"a\": {\"command\": \"x\", \"args\": [\"${input:my key}\"]}}}", `f:2: server "a": args: the input "my key" has no value here: set the environment variable INPUT_MY_KEY`},
		{"undeclared input", "{\"servers\": {\"a\": {\"command\": \"x\", \"args\": [\"${input:k}\"]}}}", `the file has no input "k"`},
		{"VS Code command", "{\"servers\": {\"a\": {\"command\": \"${command:x.y}\"}}}", `${command:…} works in VS Code only`},
		{"both kinds", "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"url\": \"https://" + secret + "\"}}}", `f:1: server "a": the server has a command and a url: keep one`},
		{"neither", "{\"mcpServers\": {\n\n\"a\": {}}}", `f:3: server "a": the server needs a command or a url`},
		{"wrong type", "{\"mcpServers\": {\"a\": {\"command\": [\"" + secret + "\"]}}}", `command: want a text, have a list`},
		{"wrong args", "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": \"" + secret + "\"}}}", `args: want a list, have a text`},
		{"unknown transport", "{\"mcpServers\": {\"a\": {\"type\": \"ws\", \"url\": \"https://x\"}}}", `unknown type "ws": want stdio, http or sse`},
		{"type contradicts", "{\"mcpServers\": {\"a\": {\"type\": \"http\", \"command\": \"x\"}}}", `the type is for a url, but the server has a command`},
		{"bad url", "{\"mcpServers\": {\"a\": {\"url\": \"ftp://" + secret + "\"}}}", `the url does not begin with https:// or http://`},
		{"duplicate server", "{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}}}", `f:2: server "a": the file has this server twice`},
		{"duplicate field", "{\"mcpServers\": {\"a\": {\"command\": \"x\",\n\"command\": \"" + secret + "\"}}}", `f:2: server "a": the field "command" occurs twice`},
		{"two sections", "{\"mcpServers\": {},\n\"servers\": {}}", `lists servers in two places`},
		{"no section", "{\"server\": {}}", `the file lists no servers: want mcpServers, servers or mcp_servers`},
		{"syntax", "{\"mcpServers\": {\n\"a\": {\"command\": \"" + secret + "\" \"x\"}}}", `f:2: the file is not valid`},
		{"not a mapping", "[1]", `want a mapping, have a list`},
		{"invisible name", "{\"mcpServers\": {\"a\\u200b\": {\"command\": \"x\"}}}", `the name has an invisible character`},
		{"own unknown field", "mcp_servers:\n  a:\n    command: x\n    exlude: [\"*\"]\n", `f:4: server "a": unknown field "exlude"`},
		{"own duration", "mcp_servers:\n  a:\n    command: x\n    call_timeout: 30\n", `f:4: server "a": call_timeout: want a time with its unit, such as 30s`},
		{"own approval", "mcp_servers:\n  a:\n    command: x\n    approval: {x: " + secret + "}\n", `f:4: server "a": approval.x: want always or never`},
		{"YAML number", "mcp_servers:\n  a:\n    command: x\n    env: {K: 0x1234567890}\n", `f:4: a number is not written as in JSON`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := ParseConfig("f", []byte(c.text), nil)
			var placed *ConfigError
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &placed) || placed.File != "f" || placed.Line < 1 {
				t.Errorf("error %v, want it to have %q", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "1234567890")) {
				t.Errorf("the error has a secret: %v", err)
			}
		})
	}
}

func TestOneBadServerLeavesTheOthers(t *testing.T) {
	got, _, err := ParseConfig("f", []byte(`{"mcpServers": {"a": {"command": "x"}, "b": {"args": []}, "c": {"command": "${NOPE}"}, "d": {"url": "https://d"}}}`), nil)
	if len(got) != 2 || got[0].Name != "a" || got[1].Name != "d" {
		t.Errorf("servers %+v", got)
	}
	if err == nil || !strings.Contains(err.Error(), `server "b"`) || !strings.Contains(err.Error(), `server "c"`) {
		t.Errorf("error %v", err)
	}
}

func TestUnknownFieldsAreWarningsWithLines(t *testing.T) {
	_, warnings, err := ParseConfig(".mcp.json", []byte(`{"theme": "dark", "mcpServers": {
"a": {"command": "x",
"comand": "y",
"autoApprove": ["delete_all"],
"timeout": 60}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`.mcp.json:1: the field "theme" has no effect`,
		`.mcp.json:3: server "a": the field "comand" has no effect; did you mean command?`,
		`.mcp.json:4: server "a": the field "autoApprove" has no effect: other programs do not decide what runs here; set approval`,
		`.mcp.json:5: server "a": the field "timeout" has no effect: programs disagree about its unit; set call_timeout`,
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("warnings:\n%s", strings.Join(got, "\n"))
	}
}

func TestDisabledServersNeedNoVariables(t *testing.T) {
	got, _, err := ParseConfig("f", []byte(`{"mcpServers": {"a": {"command": "x", "args": ["${NOPE}"], "disabled": true}}}`), nil)
	if err != nil || len(got) != 1 || !got[0].Disabled {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFolderVariablesAreThoseOfTheProject(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ".vscode", "mcp.json")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"servers": {"a": {"command": "${workspaceFolder}/bin/x", "cwd": "${userHome}"}}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	got, _, err := ReadConfig(file)
	if err != nil || got[0].Command != dir+"/bin/x" || got[0].Dir != home {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestEditsLeaveTheRestOfTheFile(t *testing.T) {
	added := Server{Name: "new", Command: "npx", Args: []string{"-y", "srv"}, Env: map[string]string{"K": "v"}}
	for _, c := range []struct{ name, file, before, after string }{
		{
			"indented JSON", "f.json", "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}\n  }\n}\n",
			"{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n    \"new\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\",\"srv\"],\n      \"env\": {\"K\":\"v\"}\n    }\n  }\n}\n",
		},
		{
			"comments and trailing commas", "f.json", "{\n\t// ours\n\t\"servers\": {\n\t\t\"a\": {\"command\": \"x\"}, // the first\n\t\t/* end */\n\t},\n}\n",
			"{\n\t// ours\n\t\"servers\": {\n\t\t\"a\": {\"command\": \"x\"}, // the first\n\t\t/* end */\n\t\t\"new\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"npx\",\n\t\t\t\"args\": [\"-y\",\"srv\"],\n\t\t\t\"env\": {\"K\":\"v\"}\n\t\t},\n\t},\n}\n",
		},
		{"one line", "f.json", `{"mcpServers":{"a":{"command":"x"}}}`, ""},
		{"empty section", "f.json", `{"mcpServers": {}, "x": 1}`, ""},
		{"no section", "f.json", "{\n  \"theme\": \"dark\"\n}\n", ""},
		{"empty object", "f.json", "{}", ""},
		{"windows lines", "f.json", "{\r\n  \"mcpServers\": {\r\n    \"a\": {\"command\": \"x\"}\r\n  }\r\n}\r\n", ""},
		{"settings.json", "settings.json", `{"mcp": {"servers": {"a": {"command": "x"}}}, "z": 1}`, ""},
		{
			"YAML", "f.yaml", "version: 1\nmcp_servers:\n  a: # first\n    command: x\n\n# the rest\nother: 1\n",
			"version: 1\nmcp_servers:\n  a: # first\n    command: x\n  new:\n    command: \"npx\"\n    args: [\"-y\",\"srv\"]\n    env: {\"K\":\"v\"}\n\n# the rest\nother: 1\n",
		},
		{"YAML without the section", "f.yaml", "version: 1", ""},
		{"YAML with an empty section", "f.yaml", "mcp_servers:\nversion: 1\n", ""},
		{"YAML with an empty mapping", "f.yaml", "mcp_servers: {}\nversion: 1\n", ""},
		{"YAML at the end", "f.yaml", "mcp_servers:\n    a:\n        command: x", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := addServer(c.file, []byte(c.before), added)
			if err != nil {
				t.Fatal(err)
			}
			if c.after != "" && string(out) != c.after {
				t.Errorf("got:\n%s\nwant:\n%s", out, c.after)
			}
			back, _, err := ParseConfig(c.file, out, nil)
			if err != nil || !reflect.DeepEqual(withoutSource(back)[len(back)-1], added) {
				t.Errorf("read again: %+v, %v\n%s", back, err, out)
			}
			if strings.Contains(c.before, "\r\n") && strings.Count(string(out), "\n") != strings.Count(string(out), "\r\n") {
				t.Errorf("mixed line ends: %q", out)
			}
			removed, err := removeServer(c.file, out, "new")
			if err != nil {
				t.Fatal(err)
			}
			if c.after != "" && string(removed) != c.before {
				t.Errorf("removed again:\n%s\nwant:\n%s", removed, c.before)
			}
			if strings.Contains(c.before, `"a"`) || strings.Contains(c.before, "a:") {
				gone, err := removeServer(c.file, out, "a")
				if back, _, err2 := ParseConfig(c.file, gone, nil); err != nil || err2 != nil || len(back) != 1 {
					t.Errorf("removed a: %v, %v, %+v\n%s", err, err2, back, gone)
				}
			}
			if _, err := addServer(c.file, out, added); err == nil || !strings.Contains(err.Error(), "already has") {
				t.Errorf("added twice: %v", err)
			}
			if _, err := removeServer(c.file, out, "newe"); err == nil || !strings.Contains(err.Error(), `did you mean new?`) {
				t.Errorf("removed a server that is not there: %v", err)
			}
		})
	}
}

func TestAddToConfigCreatesTheFile(t *testing.T) {
	for file, section := range map[string]string{"a.json": sectionClaude, ".vscode/mcp.json": sectionVSCode, "a.yaml": sectionOwn} {
		path := filepath.Join(t.TempDir(), file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, s := range []Server{Stdio("npx", "srv"), HTTP("https://example.com/mcp")} {
			if err := AddToConfig(path, s); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), section) {
			t.Errorf("%s: %v\n%s", file, err, data)
		}
		if err := RemoveFromConfig(path, "srv"); err != nil {
			t.Error(err)
		}
		got, warnings, err := ReadConfig(path)
		if err != nil || len(warnings) > 0 || len(got) != 1 || got[0].URL != "https://example.com/mcp" {
			t.Errorf("%s: %+v, %v, %v", file, got, warnings, err)
		}
	}
}

func TestForeignFormsRefuseSettingsTheyCannotHold(t *testing.T) {
	_, err := addServer("f.json", nil, Server{Name: "a", Command: "x", Exclude: []string{"*"}})
	if err == nil || !strings.Contains(err.Error(), "the form mcpServers has no field for Exclude: use a file with mcp_servers") {
		t.Error(err)
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, seed := range []string{
		`{"mcpServers": {"a": {"command": "npx", "args": ["${X:-y}"], "env": {"K": "SECRETVALUE"}}}}`,
		"{ // c\n\"servers\": {\"a\": {\"url\": \"https://SECRETVALUE\",},},}", "mcp_servers:\n  a:\n    command: SECRETVALUE\n    env: {K: 'SECRETVALUE}\n",
		`{"mcp": {"servers": {}}, "inputs": [{}]}`, "{,}", "/* { */ {\"mcpServers\": \"SECRETVALUE\"}", "mcp_servers: [SECRETVALUE, {a: b}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		servers, warnings, err := ParseConfig("f", data, env("X", "x"))
		for _, s := range servers {
			if s.Name == "" || s.Command == "" == (s.URL == "") && !s.Disabled {
				t.Errorf("unusable server %+v", s)
			}
		}
		_ = warnings
		if err != nil && err.Error() == "" {
			t.Error("empty error")
		}
		if len(data) > 4096 {
			return
		}
		// An edit either fails, or adds exactly one server.
		out, err := addServer("f", data, Server{Name: "zz-new", Command: "x"})
		if err != nil {
			return
		}
		back, err := removeServer("f", out, "zz-new")
		if err != nil {
			t.Fatalf("added, but cannot remove: %v\n%q\n%q", err, data, out)
		}
		before, _, _ := (&configParser{file: "f", raw: true}).parse(data)
		after, _, _ := (&configParser{file: "f", raw: true}).parse(back)
		if !reflect.DeepEqual(withoutSource(before), withoutSource(after)) && len(before)+len(after) > 0 {
			t.Errorf("the edits changed other servers:\n%q\n%q", data, back)
		}
	})
}

// Values never reach messages, wherever the file is broken.
func TestPropertySecretsNeverAppearInErrors(t *testing.T) {
	const secret = "sk-S3CR3TVALUE"
	texts := []string{
		`{"mcpServers": {"a": {"command": "` + secret + `", "args": ["` + secret + `"], "env": {"K": "` + secret + `"}, "url": "` + secret + `", "type": "http"}}}`,
		"mcp_servers:\n  a:\n    command: " + secret + "\n    env:\n      K: \"" + secret + "\"\n    headers: {A: " + secret + "}\n    args:\n      - " + secret + "\n",
	}
	for _, text := range texts {
		for i := range text {
			for _, change := range []string{"", "\"", ":", "}", "{", "\n", " ", "[", "\x00", "&", "*", "!", "|", "- "} {
				broken := text[:i] + change + text[i+1:]
				inserted := text[:i] + change + text[i:]
				for _, data := range []string{broken, inserted} {
					_, warnings, err := ParseConfig("f", []byte(data), nil)
					leak := ""
					if err != nil {
						leak = err.Error()
					}
					for _, w := range warnings {
						leak += w.String()
					}
					if strings.Contains(leak, "S3CR3T") && !misplaced(data) {
						t.Fatalf("%q in %s", leak, data)
					}
				}
			}
		}
	}
}

// misplaced reports whether a change made the secret a name of a field or a server.
func misplaced(data string) bool {
	_, _, err := ParseConfig("f", []byte(strings.ReplaceAll(data, "S3CR3T", "OTHER")), nil)
	return err != nil && strings.Contains(err.Error(), `"`) && strings.Contains(err.Error(), "OTHER") && !strings.Contains(err.Error(), "not valid")
}
