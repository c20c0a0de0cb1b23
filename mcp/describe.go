package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp/internal/catalog"
	"github.com/dragoman-go/dragoman/tool"
)

// ToolInfo describes a tool of a server, also one that is held.
type ToolInfo struct {
	ToolStatus
	// Name is the name that models use.
	Name string `json:"name"`
	// Spec is the definition for models, with the annotations of the server. Its Source is the
	// object of the server. Its texts are untrusted.
	Spec dragoman.ToolSpec `json:"spec"`
	// Approval reports that calls need approval.
	Approval bool `json:"approval"`
	// Hidden reports that models do not get the tool, because it is for the user interface of
	// the server.
	Hidden bool `json:"hidden,omitempty"`
}

// Describe describes the tools that a server listed, in its order, with what is suspicious about
// them, also compared with the tools of the other servers. It returns nil for a server that was
// not connected yet.
func (s *Servers) Describe(server string) ([]ToolInfo, error) {
	one, err := s.find(server)
	if err != nil {
		return nil, err
	}
	var results []*catalog.Result
	own := 0
	for _, other := range s.list {
		if other == one {
			own = len(results)
		}
		results = append(results, other.catalog())
	}
	catalog.CrossCheck(results...)
	one.mu.Lock()
	defer one.mu.Unlock()
	held := map[string]ToolStatus{}
	for _, st := range one.held {
		held[st.Tool] = st
	}
	var out []ToolInfo
	for i := range results[own].Tools {
		def := &results[own].Tools[i]
		if one.current[def.Name] == nil {
			continue
		}
		st, ok := held[def.Name]
		if !ok {
			st = statusOf(def, &offer{}, nil)
			st.State = ToolAccepted
		}
		st.Findings = findingsOf(def)
		out = append(out, ToolInfo{ToolStatus: st, Name: def.Spec.QualifiedName(), Spec: def.Spec, Approval: def.NeedsApproval, Hidden: def.AppOnly})
	}
	return out, nil
}

// catalog returns the tools that the server listed, or those that are accepted if it is not
// connected.
func (s *server) catalog() *catalog.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil && s.all.opts.Lock != nil {
		res := s.all.opts.Lock.catalog(s.cfg)
		return &res
	}
	res := s.imported
	res.Label, res.Tools = s.label, slices.Clone(res.Tools)
	for i := range res.Tools {
		res.Tools[i].Findings = slices.Clone(res.Tools[i].Findings)
	}
	return &res
}

// AcceptedTools returns the accepted tools of a server as tools for models, without connecting to
// it: for lists, and to explain what a policy decides. Their calls fail. The error wraps
// [ErrHeld] if the command or the URL of the server is another one than the accepted one.
func (l *Lock) AcceptedTools(s Server) ([]tool.Tool, error) {
	l.mu.RLock()
	accepted := l.servers[s.Label()]
	moved := accepted != nil && len(accepted.Tools) > 0 && accepted.Identity != s.identity()
	l.mu.RUnlock()
	if moved {
		return nil, fmt.Errorf("%w: server %q has another command or URL than the accepted one", ErrHeld, s.Label())
	}
	one := &server{all: &Servers{opts: Options{Lock: l}}, cfg: s, label: s.Label()}
	res := l.catalog(s)
	var out []tool.Tool
	for i := range res.Tools {
		if res.Tools[i].AppOnly {
			continue
		}
		t, err := one.newTool(&res.Tools[i])
		if err != nil {
			continue // a connected server reports it, too, and does without the tool
		}
		out = append(out, t.tool)
	}
	return out, nil
}

// catalog imports the accepted definitions of a server.
func (l *Lock) catalog(cfg Server) catalog.Result {
	label := cfg.Label()
	l.mu.RLock()
	accepted := l.servers[label]
	var raw []json.RawMessage
	if accepted != nil && accepted.Identity == cfg.identity() {
		for _, name := range sortedNames(accepted.Tools) {
			raw = append(raw, accepted.Tools[name])
		}
	}
	l.mu.RUnlock()
	return catalog.Import(label, raw, cfg.importOptions())
}

// importOptions returns the settings of a server that concern its tools.
func (s *Server) importOptions() catalog.Options {
	return catalog.Options{
		Prefix: s.Prefix, Namespace: s.Namespace, Deferred: s.Deferred, Include: s.Include, Exclude: s.Exclude,
		Approval: s.Approval, Trusted: s.Trusted, HTTP: s.URL != "",
	}
}

// errOffline is the error of calls of tools that were made without a connection.
var errOffline = errors.New("the server is not connected")
