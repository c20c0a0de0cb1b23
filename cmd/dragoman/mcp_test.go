package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/mcp"
)

// mcpFolder makes a new folder the current one, without a configuration, and returns a function
// that runs a command line in it.
func mcpFolder(t *testing.T) (dir string, do func(args ...string) ran) {
	t.Helper()
	dir, _ = runs(t)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(t.TempDir(), "config"))
	t.Chdir(dir)
	return dir, func(args ...string) ran {
		var out, err bytes.Buffer
		code := run(args, strings.NewReader(""), &out, &err)
		return ran{code, out.String(), err.String()}
	}
}

// addServer adds a server that the test binary runs.
func addServer(t *testing.T, do func(...string) ran, name, kind string, more ...string) {
	t.Helper()
	args := append([]string{"mcp", "add", name, "--env", testServer + "=" + kind}, more...)
	if r := do(append(args, "--", self(t))...); r.code != exitOK || !strings.Contains(r.out, "dragoman mcp accept "+name) {
		t.Fatalf("%+v", r)
	}
}

// has fails the test unless a text has all parts.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

func TestM3_RunUsesAcceptedToolsOfTwoServers(t *testing.T) {
	_, do := mcpFolder(t)
	addServer(t, do, "notes", "notes")
	if r := do("mcp", "add", "weather", serveTestServer(t, "weather")); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	r := do("mcp", "list")
	has(t, r.out, "notes ", "weather ", "stdio", "HTTP", "no tool accepted")
	r = do("run", "--mcp", ".mcp.json", `Call add_note with text "hi"`)
	if r.code != exitOK || strings.Contains(r.out, "noted") {
		t.Errorf("a tool that was not accepted ran: %+v", r)
	}
	has(t, r.err, "dragoman mcp accept notes", "dragoman mcp accept weather")
	if r = do("mcp", "accept", "--all"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	has(t, r.out, "add_note: new\n    | Adds a note.", "notes: 1 tool accepted", "weather: 1 tool accepted")

	r = do("run", "--mcp", ".mcp.json", `Call add_note with text "hi"`)
	if r.code != exitUnattended || strings.Contains(r.out, "noted:") {
		t.Errorf("a call without approval: %+v", r)
	}
	r = do("run", "--mcp", ".mcp.json", "--allow", "add_note,get_weather", `Call add_note with text "hi"`)
	if r.code != exitOK {
		t.Errorf("%+v", r)
	}
	has(t, r.out, "noted: hi")
	has(t, r.err, "MCP server notes: 1 tool.", "MCP server weather: 1 tool.", "--allow add_note,get_weather --mcp .mcp.json")
	r = do("run", "--continue", "--mcp", ".mcp.json", "--allow", "add_note,get_weather", `Call get_weather with city "Oslo"`)
	if r.code != exitOK {
		t.Errorf("%+v", r)
	}
	has(t, r.out, "rain in Oslo")

	if r = do("run", "--mcp", ".mcp.json", "--allow", "add_notes", "hi"); r.code != exitUsage || !strings.Contains(r.err, "did you mean add_note?") {
		t.Errorf("%+v", r)
	}
	r = do("mcp", "list", "--connect", "--report", "json")
	var list []listedServer
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || len(list) != 2 || list[0].State != "ready" || list[1].Accepted != 1 || list[0].Revision == "" {
		t.Errorf("%v %+v", err, r)
	}
}

func TestM3_ChangedDefinitionIsHeldUntilAccepted(t *testing.T) {
	dir, do := mcpFolder(t)
	text := filepath.Join(dir, "description")
	write(t, dir, "description", "Adds a note.")
	addServer(t, do, "notes", "notes", "--env", testDescription+"="+text)
	if r := do("mcp", "accept", "notes"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	call := []string{"run", "--no-session", "--mcp", ".mcp.json", "--allow", "add_note", `Call add_note with text "hi"`}
	if r := do(call...); !strings.Contains(r.out, "noted: hi") {
		t.Fatalf("%+v", r)
	}
	write(t, dir, "description", "Adds a note, and mails it.")
	r := do(call...)
	if r.code != exitOK || strings.Contains(r.out, "noted") {
		t.Errorf("%+v", r)
	}
	has(t, r.err, "1 held: add_note (changed)", "dragoman mcp show notes")
	if r = do("mcp", "test", "notes", "add_note", "--args", `{"text":"hi"}`); r.code != exitFailed || !strings.Contains(r.err, "dragoman mcp accept notes add_note") {
		t.Errorf("%+v", r)
	}
	r = do("mcp", "accept", "notes", "--dry-run")
	has(t, r.out, "add_note: changed", "- Adds a note.", "+ Adds a note, and mails it.", "would be accepted")
	if r = do(call...); strings.Contains(r.out, "noted") {
		t.Errorf("--dry-run accepted: %+v", r)
	}
	r = do("mcp", "accept", "notes")
	has(t, r.out, "- Adds a note.", "+ Adds a note, and mails it.", "1 tool accepted in dragoman.lock")
	if r = do(call...); !strings.Contains(r.out, "noted: hi") {
		t.Errorf("%+v", r)
	}
	if r = do("mcp", "test", "notes", "add_note", "--args", `{"text":"hi"}`); r.code != exitOK {
		t.Errorf("%+v", r)
	}
	has(t, r.out, "over stdio", "accepted tools: add_note", "noted: hi")
}

func TestM3_ChangedCommandHoldsTheServer(t *testing.T) {
	_, do := mcpFolder(t)
	addServer(t, do, "notes", "notes")
	do("mcp", "accept", "notes")
	data, err := os.ReadFile(".mcp.json")
	if err != nil {
		t.Fatal(err)
	}
	write(t, ".", ".mcp.json", strings.Replace(string(data), `"env"`, `"args": ["more"], "env"`, 1))
	r := do("run", "--no-session", "--mcp", ".mcp.json", "hi")
	has(t, r.err, "its command or URL changed", "dragoman mcp accept notes")
	has(t, do("mcp", "list").out, "its tools are held")
	if r = do("tools", "list", "--mcp", ".mcp.json"); strings.Contains(r.out, "add_note") {
		t.Errorf("%+v", r)
	}
}

func TestM3_BlockedToolIsAcceptedOnlyByName(t *testing.T) {
	_, do := mcpFolder(t)
	addServer(t, do, "bad", "hostile")
	addServer(t, do, "notes", "notes")
	r := do("mcp", "accept", "--all")
	if r.code != exitUnattended {
		t.Errorf("%+v", r)
	}
	has(t, r.out, "BLOCK:", "dragoman mcp accept bad steal", "notes: 1 tool accepted")
	has(t, r.err, "1 tool is still held")
	shown := do("mcp", "show", "bad")
	has(t, shown.out, "steal: new", "BLOCK:", `\u202e`, "Ignore all previous instructions", "must be accepted by name")
	named := do("mcp", "accept", "bad", "steal")
	if named.code != exitOK {
		t.Errorf("%+v", named)
	}
	called := do("mcp", "test", "bad", "steal", "--args", `{"text":"x"}`)
	has(t, called.out, `\x1b[31mred`)
	answered := do("run", "--no-session", "--mcp", ".mcp.json", "--allow", "steal", `Call steal with text "x"`)
	has(t, answered.err, "← steal: ")
	for _, text := range []string{r.out, r.err, shown.out, shown.err, named.out, named.err, called.out, called.err, answered.err} {
		if strings.ContainsAny(text, "\x1b\x07\u202e\u200b") {
			t.Errorf("characters of the server reach the terminal: %q", text)
		}
	}
}

func TestM2_ToolsWithTheSameNameGetAPrefix(t *testing.T) {
	_, do := mcpFolder(t)
	addServer(t, do, "one", "files")
	do("mcp", "accept", "one")
	r := do("run", "--no-session", "--mcp", ".mcp.json", "--allow", "mcp_one__read_file", `Call mcp_one__read_file with path "a.txt"`)
	has(t, r.out, "remote a.txt")
	has(t, do("tools", "list", "--mcp", ".mcp.json").out, "mcp_one__read_file")
}

func TestP7_WhyAndPolicyAgreeWithRunAboutServers(t *testing.T) {
	dir, do := mcpFolder(t)
	addServer(t, do, "notes", "notes")
	do("mcp", "accept", "notes")
	why := func(more ...string) string {
		t.Helper()
		r := do(append([]string{"tools", "why", "add_note", "--mcp", ".mcp.json", "--args", `{"text":"hi"}`}, more...)...)
		if r.code != exitOK {
			t.Fatalf("%+v", r)
		}
		line, _, _ := strings.Cut(r.out, "\n")
		return line
	}
	call := func(more ...string) ran {
		return do(append(append([]string{"run", "--no-session", "--mcp", ".mcp.json"}, more...), `Call add_note with text "hi"`)...)
	}
	write(t, dir, "allow.yaml", "version: 1\nrules:\n  - {id: a, effect: allow, when: {tool: add_note}}\n")
	write(t, dir, "deny.yaml", "version: 1\nrules:\n  - {id: a, effect: deny, when: {tags: \"mcp:notes\"}}\n")
	write(t, dir, "ask.yaml", "version: 1\nrules:\n  - {id: a, effect: ask, when: {tool: add_note}}\n")
	for _, tc := range []struct {
		flags   []string
		outcome string
		code    int
		ran     bool
	}{
		{nil, "outcome: ask", exitUnattended, false},
		{[]string{"--allow", "add_note"}, "outcome: run", exitOK, true},
		{[]string{"--policy", "allow.yaml"}, "outcome: run", exitOK, true},
		{[]string{"--policy", "deny.yaml", "--allow", "add_note"}, "outcome: deny", exitOK, false},
		{[]string{"--policy", "ask.yaml", "--allow", "add_note"}, "outcome: ask", exitUnattended, false},
	} {
		if got := why(tc.flags...); !strings.HasPrefix(got, tc.outcome) {
			t.Errorf("%q: %s", tc.flags, got)
		}
		if r := call(tc.flags...); r.code != tc.code || strings.Contains(r.out, "noted: hi") != tc.ran {
			t.Errorf("%q: %+v", tc.flags, r)
		}
	}
	write(t, dir, "never.yaml", "version: 1\nrules:\n  - {id: a, effect: deny, when: {tool: add_notes}}\n")
	if r := call("--policy", "never.yaml"); r.code != exitFailed || !strings.Contains(r.err, "add_note") {
		t.Errorf("a rule for an unknown tool: %+v", r)
	}
}

func TestM4_RunGoesOnWithoutAServerThatFails(t *testing.T) {
	_, do := mcpFolder(t)
	addServer(t, do, "notes", "notes")
	addServer(t, do, "dying", "dying")
	do("mcp", "accept", "--all")
	data, err := os.ReadFile(".mcp.json")
	if err != nil {
		t.Fatal(err)
	}
	r := do("run", "--no-session", "--mcp", ".mcp.json", "--allow", "explode", `Call explode with text "x"`)
	if r.code != exitOK {
		t.Errorf("%+v", r)
	}
	has(t, r.err, `← explode failed: `, "may or may not have run")
	write(t, ".", ".mcp.json", strings.Replace(string(data), testServer+`":"dying"`, testServer+`":"crash"`, 1))
	r = do("run", "--no-session", "--mcp", ".mcp.json", "--allow", "add_note", `Call add_note with text "hi"`)
	if r.code != exitOK {
		t.Errorf("%+v", r)
	}
	has(t, r.out, "noted: hi")
	has(t, r.err, "MCP server dying cannot be used: ", `the\x1b[2J disk is full`, "dragoman mcp doctor dying")
	r = do("mcp", "accept", "--all")
	if r.code != exitFailed {
		t.Errorf("%+v", r)
	}
	has(t, r.out, "dying: not connected: ", "notes: 0 tools accepted in dragoman.lock, 1 accepted before.")
	r = do("mcp", "doctor", "dying")
	if r.code != exitFailed || strings.Contains(r.out, "\x1b") {
		t.Errorf("%+v", r)
	}
	has(t, r.out, "ok    program", "FAIL  connection", "do:     run the command in a terminal")
	if r = do("run", "--no-session", "--mcp", "none.json", "hi"); r.code != exitFailed || !strings.Contains(r.err, "no server file none.json") {
		t.Errorf("%+v", r)
	}
}

func TestM1_CommandsReportMistakes(t *testing.T) {
	dir, do := mcpFolder(t)
	addServer(t, do, "notes", "notes")
	write(t, dir, "broken.json", `{"mcpServers": {"a": {"command": "${NO_SUCH_VARIABLE_HERE}"}, "b": {"url": "http://127.0.0.1:1/mcp"}}}`)
	write(t, dir, "syntax.json", `{"mcpServers": `)
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"add"}, exitUsage, "NAME is missing"},
		{[]string{"add", "x"}, exitUsage, "URL is missing"},
		{[]string{"add", "x", "npx", "y"}, exitUsage, "dragoman mcp add x -- npx y"},
		{[]string{"add", "x", "--"}, exitUsage, "COMMAND is missing"},
		{[]string{"add", "x", "https://example.com/mcp", "--env", "a=b"}, exitUsage, "--env can only"},
		{[]string{"add", "x", "--header", "a=b", "--", "npx"}, exitUsage, "--header can only"},
		{[]string{"add", "notes", "https://example.com/mcp"}, exitFailed, "already has a server"},
		{[]string{"show"}, exitUsage, "SERVER is missing"},
		{[]string{"show", "note"}, exitFailed, "did you mean notes?"},
		{[]string{"accept"}, exitUsage, "SERVER is missing"},
		{[]string{"accept", "--all", "notes"}, exitUsage, "cannot be used together"},
		{[]string{"accept", "notes", "add_not"}, exitFailed, "did you mean add_note?"},
		{[]string{"accept", "--all", "--mcp", "none.json"}, exitFailed, "no server file none.json"},
		{[]string{"list", "--mcp", "syntax.json"}, exitFailed, "syntax.json:1:"},
		{[]string{"show", "a", "--mcp", "broken.json"}, exitFailed, "NO_SUCH_VARIABLE_HERE"},
		{[]string{"accept", "b", "--mcp", "broken.json"}, exitFailed, "dragoman mcp doctor b --mcp broken.json"},
		{[]string{"test", "notes", "--args", "{}"}, exitUsage, "--args needs a TOOL"},
		{[]string{"test", "notes", "add_note", "--args", "{"}, exitUsage, "--args"},
		{[]string{"login", "notes"}, exitFailed, "is a program"},
		{[]string{"remove", "nots"}, exitFailed, "did you mean notes?"},
		{[]string{"serve", "--key-hash", "ff"}, exitUsage, "--listen"},
		{[]string{"serve", "--listen", "0.0.0.0:0"}, exitUsage, "--key-env"},
		{[]string{"serve", "--listen", "8080"}, exitUsage, "127.0.0.1"},
		{[]string{"serve", "--listen", "127.0.0.1:0", "--key-env", "NO_SUCH_VARIABLE_HERE"}, exitUsage, "at least 16"},
		{[]string{"serve", "--allow", "push"}, exitUsage, "unknown tool"},
		{[]string{"nothing"}, exitUsage, "unknown command"},
	} {
		if r := do(append([]string{"mcp"}, tc.args...)...); r.code != tc.code || !strings.Contains(r.err, tc.want) {
			t.Errorf("%q: %+v", tc.args, r)
		}
	}
	r := do("mcp", "list", "--mcp", "broken.json")
	has(t, r.out, "a", "invalid", "b", "http://127.0.0.1:1/mcp")
	if r = do("mcp", "remove", "notes"); r.code != exitOK || strings.Contains(do("mcp", "list").out, "notes") {
		t.Errorf("%+v", r)
	}
}

func TestM1_ListShowsNoValuesOfVariables(t *testing.T) {
	dir, do := mcpFolder(t)
	t.Setenv("MY_TOKEN", "hunter2hunter2")
	write(t, dir, ".mcp.json", `{"mcpServers": {"a": {"command": "prog", "args": ["--token=${MY_TOKEN}"]}, "b": {"url": "https://example.com/${MY_TOKEN}"}}}`)
	for _, args := range [][]string{{"mcp", "list"}, {"mcp", "list", "--report", "json"}} {
		r := do(args...)
		if r.code != exitOK || strings.Contains(r.out+r.err, "hunter2") || !strings.Contains(r.out, "${MY_TOKEN}") {
			t.Errorf("%+v", r)
		}
	}
}

func TestM8_DoctorNarratesTheAuthorizationOfAURL(t *testing.T) {
	_, do := mcpFolder(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer web.Close()
	r := do("mcp", "doctor", web.URL+"/mcp")
	if r.code != exitFailed {
		t.Errorf("%+v", r)
	}
	has(t, r.out, "ok    request", "without a token", "answer: 401", "challenge", "FAIL  ")
	r = do("mcp", "doctor", "--report", "json", serveTestServer(t, "weather"))
	var steps []doctorStep
	if err := json.Unmarshal([]byte(r.out), &steps); err != nil || r.code != exitOK || len(steps) < 4 {
		t.Fatalf("%v %+v", err, r)
	}
	has(t, r.out, "the server answers without authorization", "1 tool", "over HTTP", "dragoman mcp add NAME")
}

// A run with --json writes only events to standard output.
func TestM1_EventsOfARunWithServersAreJSON(t *testing.T) {
	_, do := mcpFolder(t)
	addServer(t, do, "notes", "notes")
	do("mcp", "accept", "notes")
	r := do("run", "--no-session", "--json", "--mcp", ".mcp.json", "--allow", "add_note", `Call add_note with text "hi"`)
	if r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	called := false
	for line := range strings.Lines(r.out) {
		var ev struct{ Type string }
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		called = called || ev.Type == "tool_result" && strings.Contains(line, "noted: hi")
	}
	if !called {
		t.Errorf("%s", r.out)
	}
}

func TestM5_ServeOffersTheToolsOfTheFolder(t *testing.T) {
	dir, do := mcpFolder(t)
	write(t, dir, "notes.txt", "buy milk")
	bin := filepath.Join(t.TempDir(), "dragoman")
	if err := os.Symlink(self(t), bin); err != nil { // the test binary acts as the program under this name
		t.Fatal(err)
	}
	if r := do("mcp", "add", "folder", "--", bin, "mcp", "serve", "--dir", dir, "--bare", "--allow", "write_file"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	if r := do("mcp", "accept", "folder"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	r := do("mcp", "test", "folder", "read_file", "--args", `{"path":"notes.txt"}`)
	has(t, r.out, "buy milk")
	r = do("mcp", "test", "folder", "write_file", "--args", `{"path":"b.txt","content":"x"}`)
	if _, err := os.Stat(filepath.Join(dir, "b.txt")); err != nil || r.code != exitOK {
		t.Errorf("%v %+v", err, r)
	}
	r = do("mcp", "test", "folder", "shell", "--args", `{"command":"touch c.txt"}`) // needs an approval that the client cannot give
	if _, err := os.Stat(filepath.Join(dir, "c.txt")); err == nil || r.code != exitFailed {
		t.Errorf("a command ran without approval: %+v", r)
	}
}

func TestPrinterTakesNotesOfOtherGoroutines(t *testing.T) {
	show := &printer{out: io.Discard, err: io.Discard}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			show.notef("a note")
		}
	}()
	for range 100 {
		if err := show.show(&agent.Notice{Text: "x"}); err != nil {
			t.Error(err)
		}
	}
	<-done
}

func TestM4_ServerThatBecomesReadyLaterIsReported(t *testing.T) {
	var out bytes.Buffer
	r := &serverReports{servers: &mcpServers{flags: &mcpFlags{file: "x.json"}}, t: &printer{out: io.Discard, err: &out}, states: map[string]string{}}
	for _, st := range []mcp.Status{
		{State: mcp.StateConnecting},
		{State: mcp.StateConnecting},
		{State: mcp.StateReady, Tools: []string{"a", "b"}, Held: []mcp.ToolStatus{{Tool: "c\x1b[2J", State: mcp.ToolNew}}, Notes: []string{"x: repaired", "y is not used: bad"}},
		{State: mcp.StateLost},
		{State: mcp.StateFailed, Err: io.ErrUnexpectedEOF},
	} {
		st.Server = "slow"
		r.report(st)
	}
	const want = "MCP server slow is not ready yet; its tools join when it is.\n" +
		"MCP server slow: 2 tools. 1 held: c\\x1b[2J (new). Show them with: dragoman mcp show slow --mcp x.json\n  y is not used: bad\n" +
		"MCP server slow was lost; it is connected again.\n" +
		"MCP server slow cannot be used: unexpected EOF; see: dragoman mcp doctor slow --mcp x.json\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}
