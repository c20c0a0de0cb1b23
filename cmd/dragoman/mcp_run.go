package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/tool"
)

// serverWait limits how long a run waits for its servers. Slower ones join later.
const serverWait = 15 * time.Second

// names returns the names that --allow accepts: those of the workspace and of the accepted tools.
func (s *mcpServers) names() []string {
	out := slices.Clone(workspaceTools)
	for _, t := range s.tools() {
		out = append(out, t.Spec().QualifiedName())
	}
	return out
}

// start connects to the servers that have accepted tools, and reports the others. source returns
// the tools that can be used, and stop ends the connections. A nil mcpServers has no tools.
func (s *mcpServers) start(ctx context.Context, t *printer, approver tool.Approver, attended bool) (source func(context.Context) ([]tool.Tool, error), stop func(), err error) {
	if s == nil {
		return nil, func() {}, nil
	}
	for _, n := range s.notes {
		t.notef("%s", printable(n))
	}
	var list []mcp.Server
	for _, server := range s.list {
		accept := "dragoman mcp accept " + quoteArg(server.Name) + s.flags.given()
		switch {
		case server.Disabled:
		case s.moved(server):
			t.notef("MCP server %s is not used: its command or URL changed since its tools were accepted. Accept them again with: %s", textkit.Visible(server.Name), textkit.Visible(accept))
		case len(s.lock.Tools(server.Name)) == 0:
			t.notef("MCP server %s is not used: none of its tools is accepted. Accept them with: %s", textkit.Visible(server.Name), textkit.Visible(accept))
		default:
			list = append(list, server)
		}
	}
	if len(list) == 0 {
		return nil, func() {}, nil
	}
	r := &serverReports{servers: s, t: t, states: map[string]string{}}
	r.mu.Lock() // events wait for the first report
	connected, err := s.connect(ctx, mcp.Options{Wait: serverWait, NoElicitation: !attended, Approver: approver, Observe: r.observe}, list...)
	if err != nil {
		r.mu.Unlock()
		return nil, nil, err
	}
	r.connected = connected
	for _, st := range connected.Status() {
		r.report(st)
	}
	r.mu.Unlock()
	return connected.Source, func() {
		r.mu.Lock()
		r.connected = nil // the end of the connections is no news
		r.mu.Unlock()
		closeServers(connected)
	}, nil
}

// serverReports prints what happens to the servers of a run.
type serverReports struct {
	servers *mcpServers
	t       *printer

	mu        sync.Mutex
	connected *mcp.Servers
	// states are the reported states and held tools by server.
	states map[string]string
}

// observe reports an event of a server.
func (r *serverReports) observe(e mcp.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connected == nil || e.Kind != "connected" && e.Kind != "lost" && e.Kind != "failed" && e.Kind != "tools" {
		return
	}
	for _, st := range r.connected.Status() {
		if st.Server == e.Server {
			r.report(st)
		}
	}
}

// report prints the state of a server, if it changed.
func (r *serverReports) report(st mcp.Status) {
	name := textkit.Visible(st.Server)
	text := ""
	switch st.State {
	case mcp.StateReady:
		text = fmt.Sprintf("MCP server %s: %s.", name, plural(len(st.Tools), "tool", "tools"))
		if len(st.Held) > 0 {
			text += fmt.Sprintf(" %d held: %s. Show them with: dragoman mcp show %s", len(st.Held), heldNames(st.Held), quoteArg(name)+r.servers.flags.given())
		}
		for _, n := range st.Notes {
			if strings.Contains(n, "is not used") { // the others are for mcp show
				text += "\n  " + textkit.Visible(n)
			}
		}
	case mcp.StateConnecting:
		text = fmt.Sprintf("MCP server %s is not ready yet; its tools join when it is.", name)
	case mcp.StateLost:
		text = fmt.Sprintf("MCP server %s was lost; it is connected again.", name)
	case mcp.StateFailed:
		text = fmt.Sprintf("MCP server %s cannot be used: %s", name, printable(r.servers.serverProblem(st)))
	}
	if text != "" && r.states[st.Server] != text {
		r.states[st.Server] = text
		r.t.notef("%s", text)
	}
}

// heldNames lists the first held tools.
func heldNames(held []mcp.ToolStatus) string {
	const most = 5
	var names []string
	for i, h := range held {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(held)-most))
			break
		}
		names = append(names, h.Tool+" ("+h.State+")")
	}
	return textkit.Visible(strings.Join(names, ", "))
}
