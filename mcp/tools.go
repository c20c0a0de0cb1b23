package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp/internal/catalog"
	"github.com/dragoman-go/dragoman/mcp/internal/peer"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/tool"
)

// remoteTool is a tool of a server, with the definition that models see.
type remoteTool struct {
	server *server
	def    *catalog.Tool
	tool   tool.Tool
	// input validates arguments by the original schema if models see another one; results
	// validates structured results. Nil means no check.
	input, results *schema.Validator
}

func (t *remoteTool) public() string { return t.def.Spec.QualifiedName() }

// take imports the latest list of the server and decides which tools models get.
func (s *server) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, _ := s.peer.Stored(peer.Tools)
	same := s.current != nil && slices.EqualFunc(list.Items, s.raw, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	if !same {
		s.imported = catalog.Import(s.label, list.Items, s.cfg.importOptions())
	}
	s.raw, s.dropped, s.cut = list.Items, list.Dropped, list.Truncated
	s.choose()
}

// choose decides which of the imported tools models get. The caller holds s.mu.
func (s *server) choose() {
	s.current = make(map[string]*catalog.Tool, len(s.imported.Tools))
	s.held, s.notes = nil, nil
	s.note("%s", s.cut)
	for _, d := range s.dropped {
		s.note("the tool %s is not used: %s", cmp.Or(d.Name, "without a name"), d.Reason)
	}
	for _, d := range s.imported.Diagnostics {
		s.note("%s: %s %s: %s", cmp.Or(d.Tool, "tools"), d.Kind, d.Field, d.Reason)
	}
	statuses := map[string]ToolStatus{}
	if l := s.all.opts.Lock; l != nil {
		for _, st := range l.check(s.cfg, s.imported.Tools) {
			statuses[st.Tool] = st
			if st.Held() {
				s.held = append(s.held, st)
			}
		}
	}
	before := map[string]*remoteTool{}
	for _, t := range s.usable {
		before[t.def.Name] = t
	}
	usable := make([]*remoteTool, 0, len(s.imported.Tools))
	for i := range s.imported.Tools {
		def := &s.imported.Tools[i]
		s.current[def.Name] = def
		old := before[def.Name]
		switch {
		case s.all.opts.Lock != nil:
			if st := statuses[def.Name]; st.Held() {
				continue
			}
		case s.accepted[def.Name] == nil && def.Blocked():
			st := statusOf(def, &offer{}, nil)
			s.held = append(s.held, st)
			continue
		case s.accepted[def.Name] == nil:
			s.accepted[def.Name] = def.Definition
		case !bytes.Equal(s.accepted[def.Name], def.Definition):
			st := statusOf(def, &offer{identity: s.identity}, &lockedServer{Identity: s.identity, Tools: map[string]json.RawMessage{def.Name: s.accepted[def.Name]}})
			s.held = append(s.held, st)
			if old != nil { // models keep the definition that was accepted; a call asks
				usable = append(usable, old)
			}
			continue
		}
		if def.AppOnly && !s.all.opts.Forward {
			continue
		}
		if old != nil && bytes.Equal(old.def.Definition, def.Definition) && old.def.Public == def.Public {
			usable = append(usable, old)
			continue
		}
		t, err := s.newTool(def)
		if err != nil {
			s.note("the tool %s is not used: %v", def.Name, err)
			continue
		}
		usable = append(usable, t)
	}
	s.usable = s.claim(usable)
}

// claim removes tools whose public name belongs to another server: never the last one wins
// (requirement M2).
func (s *server) claim(tools []*remoteTool) []*remoteTool {
	all := s.all
	all.mu.Lock()
	defer all.mu.Unlock()
	names := map[string]bool{}
	for _, t := range tools {
		names[t.public()] = true
	}
	for name, owner := range all.owners {
		if owner == s && !names[name] {
			delete(all.owners, name)
		}
	}
	return slices.DeleteFunc(tools, func(t *remoteTool) bool {
		if owner := all.owners[t.public()]; owner != nil && owner != s {
			s.note("the tool %s is not used: server %q has a tool with the same name; set Prefix for one of the servers, or exclude one of the tools", t.public(), owner.label)
			return true
		}
		all.owners[t.public()] = s
		return false
	})
}

// maxNotes limits the notes of a server.
const maxNotes = 200

// note adds a problem to the status. The caller holds s.mu.
func (s *server) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if text == "" || len(s.notes) > maxNotes {
		return
	}
	if len(s.notes) == maxNotes {
		text = "there are more problems"
	}
	s.notes = append(s.notes, textkit.Visible(text))
}

// accept accepts the current definitions of tools, all without names.
func (s *server) accept(names []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range names {
		if s.current[n] == nil {
			return fmt.Errorf("mcp: server %q lists no tool %q", s.label, n)
		}
	}
	for n, def := range s.current {
		if slices.Contains(names, n) || len(names) == 0 && !def.Blocked() {
			s.accepted[n] = def.Definition
		}
	}
	s.choose()
	return nil
}

// tools returns the tools for models, if the server is ready or about to be again.
func (s *server) tools() []tool.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != StateReady && s.state != StateLost {
		return nil
	}
	out := make([]tool.Tool, len(s.usable))
	for i, t := range s.usable {
		out[i] = t.tool
	}
	return out
}

// newTool makes the tool of a definition.
func (s *server) newTool(def *catalog.Tool) (*remoteTool, error) {
	t := &remoteTool{server: s, def: def}
	var err error
	if len(def.InputSchema) > 0 && !bytes.Equal(def.InputSchema, def.Spec.Parameters) {
		if t.input, err = schema.Compile(def.InputSchema); err != nil {
			t.input = nil // models see a schema that can be compiled
		}
	}
	if len(def.OutputSchema) > 0 {
		if t.results, err = schema.Compile(def.OutputSchema); err != nil {
			t.results = nil
		}
	}
	spec := def.Spec
	if !s.cfg.Trusted {
		spec.Annotations = untrusted(spec.Annotations)
	}
	t.tool = tool.Remote(spec, t.call, tool.Set(func(o *tool.Settings) {
		o.Source, o.Tags, o.From = codes.FromMCP, []string{"mcp:" + s.label}, s.from("")
		o.Continue = t.continueWork
		if s.all.opts.Forward {
			o.Tags = append(o.Tags, "forwarded")
		}
		if def.NeedsApproval {
			o.Approval = "always"
		}
		// The peer limits the call. This limit is only for code that does not react to it.
		o.Timeout = cmp.Or(s.cfg.MaxCallTime, 10*time.Minute) + 2*cmp.Or(s.cfg.ConnectTimeout, 30*time.Second) + 10*time.Second
		if t.input != nil {
			o.Hooks.Pre = append(o.Hooks.Pre, t.validate)
		}
	}))
	if bad, ok := t.tool.(interface{ Err() error }); ok {
		return nil, bad.Err()
	}
	if _, err := tool.NewBox(t.tool); err != nil {
		return nil, err
	}
	return t, nil
}

// untrusted returns the annotations of a server that is not trusted: only those that make a
// check stricter (quirk H13).
func untrusted(a dragoman.Annotations) dragoman.Annotations {
	keep := func(p *bool, value bool) *bool {
		if p != nil && *p == value {
			return p
		}
		return nil
	}
	a.ReadOnly, a.Destructive = keep(a.ReadOnly, false), keep(a.Destructive, true)
	a.Idempotent, a.OpenWorld = keep(a.Idempotent, false), keep(a.OpenWorld, true)
	return a
}

// validate checks arguments by the schema of the server, before any human is asked.
func (t *remoteTool) validate(_ context.Context, in tool.Input) (tool.Input, error) {
	args, err := t.arguments(in)
	if err == nil {
		if err = t.input.Validate(args); err != nil {
			err = fmt.Errorf("the arguments do not match the schema of the server: %w", err)
		}
	}
	return in, err
}

// arguments returns the object to send (quirk H10).
func (t *remoteTool) arguments(in tool.Input) (json.RawMessage, error) {
	args := in.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	args, err := t.def.Arguments(args)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 || jsonwire.NewReader(args).Kind() != '{' {
		return nil, errors.New("the arguments are not a JSON object, which MCP requires")
	}
	return args, nil
}

// definition returns the fingerprint of a definition.
func definition(t *catalog.Tool) string { return catalog.Fingerprint(t.Definition) }

// permitted checks that the definition at the server is one that may run. question is set if a
// human must accept a changed definition first, with its fingerprint.
func (t *remoteTool) permitted() (question *tool.InputRequest, current string, err error) {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.current[t.def.Name]
	if now == nil {
		return nil, "", fmt.Errorf("the server %q no longer offers the tool %s", s.label, t.def.Name)
	}
	current = definition(now)
	if l := s.all.opts.Lock; l != nil {
		if !bytes.Equal(now.Definition, t.def.Definition) || !l.accepted(s.label, s.identity, now.Name, now.Definition) {
			return nil, current, fmt.Errorf("%w: %s of server %q; accept it with: dragoman mcp accept %s", ErrHeld, t.public(), s.label, s.label)
		}
		return nil, current, nil
	}
	if bytes.Equal(s.accepted[now.Name], now.Definition) {
		return nil, current, nil
	}
	var lines []string
	for _, c := range catalog.Diff(s.accepted[now.Name], now.Definition) {
		lines = append(lines, c.Text)
		lines = append(lines, c.Lines...)
	}
	return &tool.InputRequest{
		Name: "definition " + current, From: fmt.Sprintf("MCP server %q", s.label),
		Prompt: cutText(fmt.Sprintf("The server changed the definition of %s. Accept the new definition, and run this call?\n%s", t.def.Name, strings.Join(lines, "\n"))),
	}, current, nil
}

// acceptDefinition accepts a changed definition, if it is still the current one.
func (t *remoteTool) acceptDefinition(fingerprint string) bool {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.current[t.def.Name]
	if now == nil || definition(now) != fingerprint {
		return false
	}
	s.accepted[now.Name] = now.Definition
	s.choose()
	return true
}

// maxPrompt limits the texts of servers in questions.
const maxPrompt = 8 << 10

// plainText shortens a text of a server and makes characters visible that could change a
// terminal. Its lines stay.
func plainText(s string) string {
	lines := strings.Split(strings.ReplaceAll(cutText(s), "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = textkit.Visible(lines[i])
	}
	return strings.Join(lines, "\n")
}

func cutText(s string) string {
	if len(s) <= maxPrompt {
		return s
	}
	return strings.ToValidUTF8(s[:maxPrompt], "") + "… (cut)"
}

// serverError is an error for the model. Its cause is for the record.
type serverError struct {
	text  string
	cause error
}

func (e *serverError) Error() string { return e.text }
func (e *serverError) Unwrap() error { return e.cause }

// explain turns an error of a call into one for the model (quirk H9). Codes and data of the
// protocol stay out of its text.
func (t *remoteTool) explain(err error) error {
	if err == nil {
		return nil
	}
	label, name := t.server.label, textkit.Visible(t.def.Name)
	text := ""
	var coded *rpc.Error
	var held *serverError
	var missing *rpc.MissingCapability
	switch {
	case errors.As(err, &held), errors.As(err, new(*tool.Suspended)), errors.Is(err, ErrHeld):
		return err
	case errors.Is(err, peer.ErrOutcomeUnknown):
		text = fmt.Sprintf("The connection to the server %q was lost during the call. The call may or may not have run: check before you repeat it.", label)
	case errors.Is(err, peer.ErrTimeout):
		text = fmt.Sprintf("The server %q did not answer in time, so the call was canceled. It may have had an effect.", label)
	case errors.Is(err, peer.ErrDeclined):
		text = fmt.Sprintf("The server %q needs an answer from the user to run %s, which was not given.", label, name)
	case errors.As(err, &missing):
		text = fmt.Sprintf("The server %q asked a question to run %s, and %v.", label, name, missing)
	case errors.As(err, &coded) && coded.Code == rpc.CodeMissingCapability:
		text = fmt.Sprintf("The server %q cannot run %s, because this client lacks a capability: %s", label, name, plainText(coded.Message))
	case errors.As(err, &coded):
		text = fmt.Sprintf("The server %q refused the call: %s", label, plainText(cmp.Or(coded.Message, "it gave no reason")))
	case errors.Is(err, peer.ErrResult):
		text = fmt.Sprintf("The server %q ran %s, but its result cannot be used: %s", label, name, plainText(err.Error()))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	default:
		text = fmt.Sprintf("The server %q is not available: %s", label, plainText(err.Error()))
	}
	return &serverError{text, err}
}
