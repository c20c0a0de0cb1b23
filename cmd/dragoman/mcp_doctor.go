package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/mcp/oauth"
)

// doctorStep is a step in the JSON of doctor. Texts of the server are escaped.
type doctorStep struct {
	Step string `json:"step"`
	OK   bool   `json:"ok"`
	// Sent is what this program did, Got the answer, Meaning explains it, and Advice says what
	// to do about a failure.
	Sent    string `json:"sent,omitempty"`
	Got     string `json:"got,omitempty"`
	Meaning string `json:"meaning,omitempty"`
	Advice  string `json:"advice,omitempty"`
	// Milliseconds is the time until the answer.
	Milliseconds int64 `json:"milliseconds,omitempty"`
}

// doctor reports the steps of a connection.
type doctor struct {
	out   io.Writer
	json  bool
	flags *mcpFlags
	arg   string

	mu     sync.Mutex
	steps  []doctorStep
	failed int
	// quiet drops messages.
	quiet bool
	err   error
}

// step reports one step.
func (d *doctor) step(s doctorStep) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.quiet {
		return
	}
	s.Sent, s.Got, s.Meaning, s.Advice = textkit.Visible(s.Sent), printable(plain(s.Got)), printable(plain(s.Meaning)), textkit.Visible(s.Advice)
	d.steps = append(d.steps, s)
	if !s.OK {
		d.failed++
	}
	if d.json {
		return
	}
	mark := "ok  "
	if !s.OK {
		mark = "FAIL"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s", mark, s.Step)
	if s.Milliseconds > 0 {
		fmt.Fprintf(&b, " (%d ms)", s.Milliseconds)
	}
	b.WriteByte('\n')
	for _, line := range []struct{ label, text string }{{"sent:   ", s.Sent}, {"answer: ", s.Got}, {"means:  ", s.Meaning}, {"do:     ", s.Advice}} {
		if line.text != "" {
			fmt.Fprintf(&b, "      %s%s\n", line.label, strings.ReplaceAll(strings.TrimRight(line.text, "\n"), "\n", "\n              "))
		}
	}
	_, _ = io.WriteString(d.out, b.String())
}

// diagnose goes through the connection to a server.
func (d *doctor) diagnose(ctx context.Context, s *mcpServers, server mcp.Server) {
	if server.URL != "" {
		d.authorization(ctx, server)
	} else {
		d.program(server)
	}
	if d.err != nil {
		return
	}
	d.negotiation(ctx, s, server)
}

// authorization reports the steps of OAuth.
func (d *doctor) authorization(ctx context.Context, server mcp.Server) {
	if hasCredentials(server) {
		d.step(doctorStep{Step: "credentials", OK: true, Meaning: "the server file has an Authorization header, so OAuth is not used"})
		return
	}
	o, err := oauthOptions(ctx, server.URL)
	if err != nil {
		d.step(doctorStep{Step: "token store", Meaning: err.Error(), Advice: "correct the store, or delete its folder and log in again"})
		return
	}
	for st := range oauth.Diagnose(ctx, server.URL, o) {
		advice := st.Advice
		if advice == "log in" {
			advice = "log in with: dragoman mcp login " + quoteArg(d.arg) + d.given()
		}
		d.step(doctorStep{Step: st.Name, OK: st.OK, Sent: st.Sent, Got: st.Got, Meaning: st.Meaning, Advice: advice})
	}
}

// given returns the flags for other commands about the same server.
func (d *doctor) given() string {
	if isURL(d.arg) {
		return ""
	}
	return d.flags.given()
}

// program reports whether a program can be started.
func (d *doctor) program(server mcp.Server) {
	path, err := exec.LookPath(server.Command)
	if err != nil {
		d.step(doctorStep{Step: "program", Meaning: err.Error(), Advice: "install the program, or write its full path in " + d.flags.file})
		return
	}
	d.step(doctorStep{Step: "program", OK: true, Meaning: "the command is " + path})
}

// negotiation connects, and reports every message.
func (d *doctor) negotiation(ctx context.Context, s *mcpServers, server mcp.Server) {
	start := time.Now()
	servers, err := s.connect(ctx, mcp.Options{
		Trace: d.exchanged, Log: slog.New(&warnings{d: d}),
	}, server)
	if err != nil {
		d.err = err
		return
	}
	st := servers.Status()[0]
	tools, _ := servers.Describe(st.Server)
	d.mu.Lock()
	d.quiet = true // the end of the connection is no step
	d.mu.Unlock()
	closeServers(servers)
	d.mu.Lock()
	d.quiet = false
	d.mu.Unlock()
	took := time.Since(start).Milliseconds()
	if st.State != mcp.StateReady {
		step := doctorStep{Step: "connection", Meaning: st.State, Milliseconds: took}
		if st.Err != nil {
			step.Meaning = st.Err.Error()
		}
		switch {
		case needsLogin(st.Err):
			step.Advice = "log in with: dragoman mcp login " + quoteArg(d.arg) + d.given()
		case server.Command != "":
			step.Advice = "run the command in a terminal, and look at what it writes; standard output must have only messages of the protocol"
		default:
			step.Advice = "check that the URL is that of the MCP endpoint, and see the steps above"
		}
		d.step(step)
		return
	}
	d.step(doctorStep{Step: "connection", OK: true, Milliseconds: took, Meaning: fmt.Sprintf(
		"%s speaks revision %s over %s; capabilities: %s", strings.TrimSpace(st.Name+" "+st.Version), st.Revision, transportOf(server), capabilitiesOf(st))})
	held := 0
	for i := range tools {
		if tools[i].Held() {
			held++
		}
	}
	step := doctorStep{Step: "tools", OK: true, Meaning: fmt.Sprintf("%s: %d accepted, %d held", plural(len(tools), "tool", "tools"), len(tools)-held, held)}
	if held > 0 && !isURL(d.arg) {
		step.Advice = "see and accept them with: dragoman mcp show " + quoteArg(d.arg) + d.given() + ", dragoman mcp accept " + quoteArg(d.arg) + d.given()
	} else if isURL(d.arg) {
		step.Meaning = plural(len(tools), "tool", "tools")
		step.Advice = "to use them: dragoman mcp add NAME " + quoteArg(d.arg)
	}
	d.step(step)
	for _, n := range st.Notes {
		d.step(doctorStep{Step: "note", OK: true, Meaning: n})
	}
}

// exchanged reports a message.
func (d *doctor) exchanged(x mcp.Exchange) {
	s := doctorStep{Step: x.Method, OK: true, Milliseconds: x.Took.Milliseconds()}
	switch {
	case x.Method == "" && x.Err != nil:
		s.Step, s.OK, s.Meaning = "start", false, x.Err.Error()
	case x.Method == "":
		return
	case x.Received:
		s.Meaning = "the server sent this on its own account"
	case x.Err != nil:
		s.Got, s.Meaning = x.Err.Error(), "the request failed; another way may follow"
	case x.Result != nil:
		s.Got = describeResult(x.Method, x.Result)
	}
	if revision := revisionIn(x.Params); revision != "" && !x.Received {
		s.Sent = "revision " + revision
	}
	d.step(s)
}

// revisionIn returns the revision that a request names.
func revisionIn(params json.RawMessage) string {
	var p struct {
		Version string `json:"protocolVersion"`
		Meta    struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	return p.Version + p.Meta.Version
}

// describeResult describes the response to a request in a few words.
func describeResult(method string, result json.RawMessage) string {
	var r struct {
		Version   string            `json:"protocolVersion"`
		Supported []string          `json:"supportedVersions"`
		Tools     []json.RawMessage `json:"tools"`
		Cursor    string            `json:"nextCursor"`
	}
	if json.Unmarshal(result, &r) != nil {
		return fmt.Sprintf("%d bytes", len(result))
	}
	switch {
	case method == "tools/list" && r.Cursor != "":
		return plural(len(r.Tools), "tool", "tools") + ", and another page"
	case method == "tools/list":
		return plural(len(r.Tools), "tool", "tools")
	case r.Version != "":
		return "revision " + r.Version
	case len(r.Supported) > 0:
		return "revisions " + strings.Join(r.Supported, ", ")
	default:
		return fmt.Sprintf("%d bytes", len(result))
	}
}

// capabilitiesOf lists what a server says that it supports.
func capabilitiesOf(st mcp.Status) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(st.Capabilities, &all) != nil || len(all) == 0 {
		return "none"
	}
	var names []string
	for name := range all {
		names = append(names, cut(name, 60))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// warnings reports the warnings of package mcp as steps.
type warnings struct {
	d    *doctor
	text string
}

func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Message + w.text
	r.Attrs(func(a slog.Attr) bool { text += ", " + a.String(); return true })
	w.d.step(doctorStep{Step: "warning", OK: true, Meaning: text})
	return nil
}

func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w } // they name the server
func (w *warnings) WithGroup(string) slog.Handler      { return w }
