package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp/internal/catalog"
)

// ErrHeld is wrapped by errors about tools whose definition is not accepted.
var ErrHeld = errors.New("mcp: the tool is held until its definition is accepted")

// LockFile is the usual name of the file of a [Lock].
const LockFile = "dragoman.lock"

// Lock has the accepted definitions of the tools of servers, in a file that can be committed:
//
//	lock, err := mcp.OpenLock(mcp.LockFile)
//	for _, t := range lock.Check(server, tools...) {
//		fmt.Println(t.Text())          // what is new, what changed
//	}
//	skipped, err := lock.AcceptAll("files") // or lock.Accept("files", "read_file")
//	err = lock.Save()
//
// A definition has the name, title, description, schemas and annotations of a tool. A tool that
// is new, or whose definition changed, is held: models do not see it and cannot call it until
// it is accepted. A server whose command or URL changed is held as a whole.
//
// A Lock is safe for concurrent use. The zero Lock is empty and has no file.
type Lock struct {
	path string

	mu      sync.RWMutex
	servers map[string]*lockedServer
	skills  map[string]json.RawMessage
	// offers are the latest definitions of each server that was checked.
	offers map[string]*offer
	// edits are the changes since the file was read: Save applies them to the file as it
	// is then, so that changes of other processes stay.
	edits []lockEdit
}

// lockedServer are the accepted definitions of one server. Prompts and skills are read and
// written, and not checked yet.
type lockedServer struct {
	Identity string                     `json:"identity"`
	Tools    map[string]json.RawMessage `json:"tools"`
	Prompts  map[string]json.RawMessage `json:"prompts,omitempty"`
	Skills   map[string]json.RawMessage `json:"skills,omitempty"`
}

// offer has the tools that a server listed.
type offer struct {
	identity string
	tools    []catalog.Tool
	// definitions are the definitions of the tools by their names.
	definitions map[string]json.RawMessage
}

// lockEdit accepts a definition, or removes one if definition is nil. Without a tool, it
// removes the server, or sets its identity and removes its tools.
type lockEdit struct {
	server, identity string
	tool             string
	definition       json.RawMessage
	reset, remove    bool
}

// The states of a tool.
const (
	// ToolAccepted means that the definition is the accepted one.
	ToolAccepted = "accepted"
	// ToolNew means that no definition was accepted.
	ToolNew = "new"
	// ToolChanged means that the definition differs from the accepted one.
	ToolChanged = "changed"
	// ToolIdentity means that the server is another command or URL than the one whose tools
	// were accepted.
	ToolIdentity = "identity"
	// ToolMissing means that a definition was accepted, but the server no longer lists the
	// tool.
	ToolMissing = "missing"
)

// ToolStatus compares one tool of a server with the lock.
type ToolStatus struct {
	// Server is the label of the server, and Tool the name of the tool at the server.
	Server string `json:"server"`
	Tool   string `json:"tool"`
	// State is one of the constants above.
	State string `json:"state"`
	// Changes describe a changed tool.
	Changes []DefinitionChange `json:"changes,omitempty"`
	// RenamedFrom is the accepted tool that had the same definition under another name.
	RenamedFrom string `json:"renamed_from,omitempty"`
	// Findings are suspicious texts in the definition. One with the severity "block" holds the
	// tool until it is accepted by its name.
	Findings []Finding `json:"findings,omitempty"`
	// Fingerprint is the hash of the definition that the server lists, and Description its
	// description, escaped for a terminal.
	Fingerprint string `json:"fingerprint,omitempty"`
	Description string `json:"description,omitempty"`
	// Identity describes a changed server: the accepted and the current one.
	Identity string `json:"identity,omitempty"`
}

// DefinitionChange is one difference between the accepted and the current definition.
type DefinitionChange struct {
	// Field is the field of the definition, such as "inputSchema".
	Field string `json:"field"`
	// Text describes the change, such as "parameter path: type string -> array".
	Text string `json:"text"`
	// Lines are removed ("- …") and added ("+ …") lines of a longer text.
	Lines []string `json:"lines,omitempty"`
}

// Finding is a suspicious text in the definition of a tool.
type Finding struct {
	// Rule names the rule that matched, such as "injection_phrase", and Reason explains it.
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
	// Severity is "block", "ask" or "info".
	Severity string `json:"severity"`
	// Field is the JSON pointer of the text in the tool, Offset the byte offset in it, and
	// Excerpt the text around it, escaped for a terminal.
	Field   string `json:"field"`
	Offset  int    `json:"offset"`
	Excerpt string `json:"excerpt"`
}

// Held reports whether the server lists the tool, but models must not see or call it.
func (t ToolStatus) Held() bool { return t.State != ToolAccepted && t.State != ToolMissing }

// Blocked reports whether a finding demands that the tool is accepted by its name.
func (t ToolStatus) Blocked() bool {
	return slices.ContainsFunc(t.Findings, func(f Finding) bool { return f.Severity == catalog.Block })
}

// String describes the status in one line.
func (t ToolStatus) String() string {
	name := textkit.Visible(t.Tool)
	switch t.State {
	case ToolAccepted:
		return name + ": accepted"
	case ToolMissing:
		return name + ": no longer listed by the server"
	case ToolIdentity:
		return name + ": held, because the server changed"
	case ToolNew:
		if t.RenamedFrom != "" {
			return name + ": new, the same definition as " + textkit.Visible(t.RenamedFrom) + " before"
		}
		return name + ": new"
	}
	return name + ": changed, " + textkit.Count(len(t.Changes), "difference")
}

// Text describes the status in full for a terminal: the differences, line by line, and the
// findings. Everything that comes from the server is escaped.
func (t ToolStatus) Text() string {
	var b strings.Builder
	b.WriteString(t.String() + "\n")
	if t.Identity != "" {
		b.WriteString("    server: " + t.Identity + "\n")
	}
	if t.State == ToolNew || t.State == ToolIdentity {
		for line := range strings.SplitSeq(t.Description, "\n") {
			if line != "" {
				b.WriteString("    | " + line + "\n")
			}
		}
	}
	for _, c := range t.Changes {
		b.WriteString("    " + c.Text + "\n")
		for _, line := range c.Lines {
			b.WriteString("        " + line + "\n")
		}
	}
	for _, f := range t.Findings {
		fmt.Fprintf(&b, "    %s: %s (%s at %s, byte %d)\n        %s\n", strings.ToUpper(f.Severity), f.Reason, f.Rule, textkit.Visible(f.Field), f.Offset, f.Excerpt)
	}
	return b.String()
}

// Check compares the tools of a server, as raw objects of tools/list, with the accepted
// definitions, and remembers them for [Lock.Accept]. The result has the tools in the order of
// the server, then accepted tools that the server no longer lists, by name. Tools that cannot
// be used are left out.
func (l *Lock) Check(server Server, tools ...json.RawMessage) []ToolStatus {
	res := catalog.Import(server.Label(), tools, catalog.Options{})
	return l.check(server, res.Tools)
}

// check compares imported tools with the accepted definitions.
func (l *Lock) check(server Server, tools []catalog.Tool) []ToolStatus {
	o := &offer{identity: server.identity(), tools: slices.Clone(tools), definitions: map[string]json.RawMessage{}}
	for i := range tools {
		o.definitions[tools[i].Name] = tools[i].Definition
	}
	label := server.Label()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.offers == nil {
		l.offers = map[string]*offer{}
	}
	l.offers[label] = o
	return l.statuses(label, o)
}

// statuses compares an offer with the accepted definitions.
func (l *Lock) statuses(label string, o *offer) []ToolStatus {
	accepted := l.servers[label]
	var out []ToolStatus
	for i := range o.tools {
		out = append(out, statusOf(&o.tools[i], o, accepted))
	}
	if accepted != nil {
		for _, name := range sortedNames(accepted.Tools) {
			if o.definitions[name] == nil {
				out = append(out, ToolStatus{Server: label, Tool: name, State: ToolMissing})
			}
		}
	}
	return out
}

// statusOf compares one tool with the accepted definitions of its server.
func statusOf(t *catalog.Tool, o *offer, accepted *lockedServer) ToolStatus {
	s := ToolStatus{Server: t.Server, Tool: t.Name, State: ToolNew, Fingerprint: t.Fingerprint(), Description: visibleLines(t.Description())}
	for _, f := range t.Findings {
		s.Findings = append(s.Findings, Finding{Rule: f.Rule, Reason: f.Reason, Severity: f.Severity, Field: f.Field, Offset: f.Offset, Excerpt: f.Excerpt})
	}
	if accepted == nil {
		return s
	}
	before := accepted.Tools[t.Name]
	switch {
	case before == nil:
		for _, name := range sortedNames(accepted.Tools) {
			if o.definitions[name] == nil && catalog.SameExceptName(accepted.Tools[name], t.Definition) {
				s.RenamedFrom = name
				break
			}
		}
	case string(before) == string(t.Definition):
		s.State = ToolAccepted
	default:
		s.State = ToolChanged
		for _, c := range catalog.Diff(before, t.Definition) {
			s.Changes = append(s.Changes, DefinitionChange(c))
		}
	}
	if accepted.Identity != o.identity {
		s.State = ToolIdentity
		s.Identity = textkit.Visible(accepted.Identity) + " -> " + textkit.Visible(o.identity)
	}
	return s
}

// visibleLines escapes a text for a terminal and keeps its lines.
func visibleLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = textkit.Visible(strings.TrimSuffix(line, "\r"))
	}
	return strings.Join(lines, "\n")
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Status compares the tools that the latest [Lock.Check] of a server saw with the definitions
// that are accepted now. It returns nil if the server was not checked.
func (l *Lock) Status(server string) []ToolStatus {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if o := l.offers[server]; o != nil {
		return l.statuses(server, o)
	}
	return nil
}

// accepted reports whether a definition is the accepted one of a tool of a server with this
// identity. A call asks right before it runs.
func (l *Lock) accepted(server, identity, tool string, definition json.RawMessage) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := l.servers[server]
	return s != nil && s.Identity == identity && definition != nil && string(s.Tools[tool]) == string(definition)
}

// Servers returns the labels of the servers with accepted definitions, sorted.
func (l *Lock) Servers() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return sortedNames(l.servers)
}

// Tools returns the names of the accepted tools of a server, sorted.
func (l *Lock) Tools(server string) []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if s := l.servers[server]; s != nil {
		return sortedNames(s.Tools)
	}
	return nil
}

// Accept accepts the definitions that the latest [Lock.Check] saw of these tools, also of tools
// with findings. If the server changed its identity, accepting a tool forgets all tools that
// were accepted from the earlier server. A name that the server does not list is an error, and
// then nothing is accepted.
func (l *Lock) Accept(server string, tools ...string) error {
	if len(tools) == 0 {
		return fmt.Errorf("mcp: lock: name the tools of server %q to accept, or accept all", server)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o, err := l.offerOf(server)
	if err != nil {
		return err
	}
	for _, name := range tools {
		if o.definitions[name] == nil {
			return fmt.Errorf("mcp: lock: server %q lists no tool %q%s", server, name, textkit.Suggest(name, sortedNames(o.definitions)))
		}
	}
	l.accept(server, o, tools)
	return nil
}

func (l *Lock) offerOf(server string) (*offer, error) {
	if o := l.offers[server]; o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("mcp: lock: the tools of server %q are not known yet: connect to it first", server)
}

// AcceptAll accepts all definitions that the latest [Lock.Check] saw, and forgets tools that the
// server no longer lists. It skips tools with a finding of severity "block", which must be
// accepted by name, and returns them.
func (l *Lock) AcceptAll(server string) (skipped []ToolStatus, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, err := l.offerOf(server)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range l.statuses(server, o) {
		switch {
		case t.State == ToolAccepted:
		case t.State == ToolMissing:
			l.edit(lockEdit{server: server, tool: t.Tool, remove: true})
		case t.Blocked():
			skipped = append(skipped, t)
		default:
			names = append(names, t.Tool)
		}
	}
	l.accept(server, o, names)
	return skipped, nil
}

// accept accepts definitions of an offer.
func (l *Lock) accept(server string, o *offer, tools []string) {
	if s := l.servers[server]; s == nil || s.Identity != o.identity {
		l.edit(lockEdit{server: server, identity: o.identity, reset: true})
	}
	for _, name := range tools {
		l.edit(lockEdit{server: server, identity: o.identity, tool: name, definition: o.definitions[name]})
	}
}

// Remove forgets the accepted definitions of these tools of a server, or without tools, of the
// whole server. Names that are not accepted are ignored.
func (l *Lock) Remove(server string, tools ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(tools) == 0 {
		l.edit(lockEdit{server: server, remove: true})
	}
	for _, name := range tools {
		l.edit(lockEdit{server: server, tool: name, remove: true})
	}
}

// edit applies a change in memory and notes it for Save.
func (l *Lock) edit(e lockEdit) {
	if l.servers == nil {
		l.servers = map[string]*lockedServer{}
	}
	e.apply(l.servers)
	l.edits = append(l.edits, e)
}

// apply changes a set of servers.
func (e lockEdit) apply(servers map[string]*lockedServer) {
	s := servers[e.server]
	switch {
	case e.remove && e.tool == "":
		delete(servers, e.server)
	case e.remove:
		if s != nil {
			delete(s.Tools, e.tool)
		}
	case e.reset:
		// Another process may have accepted tools of the same server in the meantime.
		if s == nil || s.Identity != e.identity {
			servers[e.server] = &lockedServer{Identity: e.identity, Tools: map[string]json.RawMessage{}}
		}
	default:
		if s == nil || s.Identity != e.identity {
			s = &lockedServer{Identity: e.identity, Tools: map[string]json.RawMessage{}}
			servers[e.server] = s
		}
		s.Tools[e.tool] = e.definition
	}
}

// identity describes which server this is, without its secrets: the program and a hash of the
// command line, or the URL, with a hash of its query. A server from a file is identified by the
// text of the file before variables are replaced, so that the lock is the same for all who share
// the file.
func (s Server) identity() string {
	source := s.source
	if source == nil {
		source = &serverSource{command: s.Command, args: s.Args, url: s.URL}
	}
	return source.identity()
}
