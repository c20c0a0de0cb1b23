package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// maxConfigBytes bounds a file of servers.
const maxConfigBytes = 4 << 20

// The sections in which files list servers.
const (
	sectionClaude = "mcpServers"  // Claude Desktop, Claude Code, Cursor and others
	sectionVSCode = "servers"     // .vscode/mcp.json
	sectionOwn    = "mcp_servers" // our own settings, in YAML or JSON
	settingsMCP   = "mcp"         // settings.json of VS Code: {"mcp": {"servers": …}}
)

// Warning is a part of a file of servers that has no effect.
type Warning struct {
	File string
	Line int
	// Server is the name of the server; empty if the part belongs to none.
	Server string
	Text   string
}

func (w Warning) String() string { return placed(w.File, w.Line, w.Server, w.Text) }

// ConfigError is a problem in a file of servers. It has no values of the file, which may be
// secrets.
type ConfigError struct {
	File string
	Line int
	// Server is the name of the server; empty if the problem is not that of a server.
	Server string
	Reason string
}

func (e *ConfigError) Error() string {
	return "mcp: " + placed(e.File, e.Line, e.Server, e.Reason)
}

func placed(file string, line int, server, text string) string {
	if server != "" {
		text = fmt.Sprintf("server %q: %s", server, text)
	}
	return fmt.Sprintf("%s:%d: %s", file, line, text)
}

// ReadConfig reads the servers in a file, in the order of the file. It understands these forms:
//
//   - {"mcpServers": {…}} of Claude Desktop, Claude Code, Cursor and others
//   - {"servers": {…}, "inputs": […]} of VS Code, also in its settings.json under "mcp"
//   - mcp_servers: in YAML or JSON, with the fields of [Server] in snake_case
//
// JSON may have comments and trailing commas. ${VAR} and ${VAR:-default} in commands,
// arguments, folders, environments, URLs and headers are replaced by environment variables; so
// are ${env:VAR}, ${userHome} and ${workspaceFolder}. ${input:some-id} is the environment
// variable INPUT_SOME_ID.
//
// Warnings list the fields that have no effect. If some servers are invalid, the error lists
// each of them, and the others are returned. Errors inside are of type *[ConfigError].
func ReadConfig(path string) ([]Server, []Warning, error) {
	data, err := readConfigFile(path)
	if err != nil {
		return nil, nil, err
	}
	p := configParser{file: path, lookup: os.LookupEnv, workspace: workspaceOf(path)}
	p.home, _ = os.UserHomeDir()
	return p.parse(data)
}

// ParseConfig is like [ReadConfig] for the content of a file. name is the name of the file for
// messages, and lookup returns the value of a variable.
func ParseConfig(name string, data []byte, lookup func(string) (string, bool)) ([]Server, []Warning, error) {
	p := configParser{file: name, lookup: lookup}
	if lookup == nil {
		p.lookup = func(string) (string, bool) { return "", false }
	}
	p.home, _ = p.lookup("HOME")
	return p.parse(data)
}

func readConfigFile(path string) ([]byte, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, fmt.Errorf("mcp: read the servers: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return nil, fmt.Errorf("mcp: read the servers: %w", err)
	}
	return data, nil
}

// workspaceOf returns the project folder of a file.
func workspaceOf(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	dir := filepath.Dir(abs)
	if base := filepath.Base(dir); base == ".vscode" || base == ".cursor" || base == ".gemini" {
		dir = filepath.Dir(dir)
	}
	return dir
}

type configParser struct {
	file            string
	lookup          func(string) (string, bool)
	home, workspace string

	// raw leaves variables as they are.
	raw      bool
	server   string // the server that is read
	inputs   map[string]configInput
	warnings []Warning
	errs     []error
}

// configInput is an input of VS Code. An environment variable replaces the question to the user.
type configInput struct {
	fallback    string
	hasFallback bool
}

func (p *configParser) failf(line int, format string, args ...any) {
	const most = 50
	if len(p.errs) < most {
		p.errs = append(p.errs, &ConfigError{File: p.file, Line: line, Server: p.server, Reason: fmt.Sprintf(format, args...)})
	}
}

func (p *configParser) warnf(line int, format string, args ...any) {
	const most = 200
	if len(p.warnings) < most {
		p.warnings = append(p.warnings, Warning{File: p.file, Line: line, Server: p.server, Text: fmt.Sprintf(format, args...)})
	}
}

// section is the part of a file that lists servers.
type section struct {
	name   string
	node   *configfile.Node
	parent *configfile.Node // the object that has the section
}

func (p *configParser) parse(data []byte) ([]Server, []Warning, error) {
	if len(data) > maxConfigBytes {
		p.failf(1, "the file is larger than %d bytes", maxConfigBytes)
		return nil, nil, p.errs[0]
	}
	root, errs := configfile.Read(plainJSON(data))
	if root == nil || len(errs) > 0 {
		for _, e := range errs {
			p.failf(e.Line, "%s", syntaxReason(e.Reason))
		}
		return nil, nil, errors.Join(p.errs...)
	}
	s, ok := p.findSection(root)
	if !ok {
		return nil, p.warnings, errors.Join(p.errs...)
	}
	var servers []Server
	if s.node.Kind == configfile.Null {
		return nil, p.warnings, nil
	}
	names := map[string]bool{}
	if p.want(s.node, configfile.Map, s.name) {
		for i, key := range s.node.Keys {
			p.server = key.Text
			before := len(p.errs)
			switch {
			case names[key.Text]:
				p.failf(key.Line, "the file has this server twice")
			case !p.validName(key):
			default:
				if srv := p.entry(s.name, key, s.node.Items[i]); len(p.errs) == before {
					servers = append(servers, srv)
				}
			}
			names[key.Text] = true
			p.server = ""
		}
	}
	return servers, p.warnings, errors.Join(p.errs...)
}

// syntaxReason returns the reason of a syntax error without text of the file.
func syntaxReason(reason string) string {
	if strings.HasPrefix(reason, "write the number") {
		return "a number is not written as in JSON: correct it, or put it in quotes"
	}
	for _, mark := range [...]string{`"`, "'", "`", "\n"} {
		if i := strings.Index(reason, mark); i >= 0 {
			reason = reason[:i]
		}
	}
	return "the file is not valid: " + strings.TrimRight(reason, " :")
}

func (p *configParser) validName(key *configfile.Node) bool {
	const longest = 128
	switch {
	case key.Text == "":
		p.failf(key.Line, "a server needs a name")
	case len(key.Text) > longest:
		p.server = ""
		p.failf(key.Line, "the name of a server has more than %d bytes", longest)
	case textkit.CheckName(key.Text) != nil:
		p.failf(key.Line, "the name has an invisible character")
	default:
		return true
	}
	return false
}

// findSection finds the servers in a file.
func (p *configParser) findSection(root *configfile.Node) (section, bool) {
	if !p.want(root, configfile.Map, "the file") {
		return section{}, false
	}
	var found []section
	for i, key := range root.Keys {
		switch item := root.Items[i]; key.Text {
		case sectionClaude, sectionVSCode, sectionOwn:
			found = append(found, section{key.Text, item, root})
		case settingsMCP:
			for j, inner := range item.Keys {
				if inner.Text == sectionVSCode && item.Kind == configfile.Map {
					found = append(found, section{sectionVSCode, item.Items[j], item})
				}
			}
		}
	}
	switch len(found) {
	case 0:
		p.failf(root.Line, "the file lists no servers: want %s, %s or %s", sectionClaude, sectionVSCode, sectionOwn)
		return section{}, false
	case 1:
	default:
		p.failf(found[1].node.Line, "the file lists servers in two places, %s and %s: keep one", found[0].name, found[1].name)
		return section{}, false
	}
	s := found[0]
	// Our own section and settings.json are parts of larger files.
	if s.name != sectionOwn && s.parent == root {
		for _, key := range root.Keys {
			switch {
			case key.Text == s.name, key.Text == "$schema":
			case key.Text == "inputs" && s.name == sectionVSCode:
			default:
				p.warnf(key.Line, "the field %q has no effect", textkit.Visible(key.Text))
			}
		}
	}
	if s.name == sectionVSCode {
		p.readInputs(s.parent)
	}
	return s, true
}

// readInputs reads the inputs of VS Code, which asks the user for their values.
func (p *configParser) readInputs(parent *configfile.Node) {
	p.inputs = map[string]configInput{}
	for i, key := range parent.Keys {
		list := parent.Items[i]
		if key.Text != "inputs" || !p.want(list, configfile.List, "inputs") {
			continue
		}
		for _, item := range list.Items {
			if !p.want(item, configfile.Map, "an input") {
				continue
			}
			id, in := "", configInput{}
			for j, k := range item.Keys {
				switch v := item.Items[j]; {
				case v.Kind != configfile.String:
				case k.Text == "id":
					id = v.Text
				case k.Text == "default":
					in = configInput{v.Text, true}
				}
			}
			if id == "" {
				p.failf(item.Line, "an input has no id")
				continue
			}
			p.inputs[id] = in
		}
	}
}

// want reports whether a value has a kind. Its error does not have the value.
func (p *configParser) want(n *configfile.Node, kind configfile.Kind, what string) bool {
	if n.Kind != kind {
		p.failf(n.Line, "%s: want %s, have %s", what, kind, n.Kind)
	}
	return n.Kind == kind
}

func (p *configParser) text(n *configfile.Node, what string) string {
	if !p.want(n, configfile.String, what) {
		return ""
	}
	return n.Text
}

// scalar returns a text, also of a number or boolean.
func (p *configParser) scalar(n *configfile.Node, what string) string {
	switch n.Kind {
	case configfile.String, configfile.Number, configfile.Bool:
		return n.Text
	}
	p.want(n, configfile.String, what)
	return ""
}

func (p *configParser) texts(n *configfile.Node, what string) (out []string) {
	if n.Kind == configfile.Null || !p.want(n, configfile.List, what) {
		return nil
	}
	for _, item := range n.Items {
		out = append(out, p.scalar(item, what))
	}
	return out
}

// pairs returns a mapping of names to texts. A null is left out.
func (p *configParser) pairs(n *configfile.Node, what string, value func(n *configfile.Node, what string) string) map[string]string {
	if n.Kind == configfile.Null || !p.want(n, configfile.Map, what) {
		return nil
	}
	out := map[string]string{}
	for i, key := range n.Keys {
		if _, twice := out[key.Text]; twice {
			p.failf(key.Line, "%s: %q occurs twice", what, textkit.Visible(key.Text))
			continue
		}
		if item := n.Items[i]; item.Kind != configfile.Null {
			out[key.Text] = value(item, what+"."+textkit.Visible(key.Text))
		}
	}
	return out
}

func (p *configParser) boolean(n *configfile.Node, what string) bool {
	return p.want(n, configfile.Bool, what) && n.Text == "true"
}

func (p *configParser) duration(n *configfile.Node, what string) time.Duration {
	if n.Kind == configfile.Number {
		p.failf(n.Line, "%s: want a time with its unit, such as 30s", what)
		return 0
	}
	text := p.text(n, what)
	d, err := time.ParseDuration(text)
	if n.Kind == configfile.String && (err != nil || d <= 0) {
		p.failf(n.Line, "%s: want a time such as 30s or 2m", what)
	}
	return d
}

func (p *configParser) count(n *configfile.Node, what string) int {
	r := configfile.Reader{}
	v := r.Count(n, what, 1)
	if len(r.Errs) > 0 {
		p.failf(n.Line, "%s: want a whole number of at least 1", what)
	}
	return v
}

// expanded returns a text with its variables replaced.
func (p *configParser) expanded(n *configfile.Node, what string) string {
	return p.expand(n, what, p.scalar(n, what))
}

// entry reads one server.
func (p *configParser) entry(sectionName string, key, n *configfile.Node) Server {
	s := Server{Name: key.Text}
	if !p.want(n, configfile.Map, "a server") {
		return s
	}
	// Variables of a disabled server need no values.
	raw := p.raw
	for i, k := range n.Keys {
		if v := n.Items[i]; k.Text == "disabled" && v.Kind == configfile.Bool && v.Text == "true" || k.Text == "enabled" && v.Kind == configfile.Bool && v.Text == "false" {
			p.raw = true
		}
	}
	source := &serverSource{}
	fields := p.sharedFields(&s, source)
	if sectionName == sectionOwn {
		p.addOwnFields(fields, &s)
	} else {
		p.addForeignFields(fields, &s)
	}
	seen := map[string]bool{}
	for i, k := range n.Keys {
		set := fields[k.Text]
		switch {
		case seen[k.Text]:
			p.failf(k.Line, "the field %q occurs twice", textkit.Visible(k.Text))
		case set != nil:
			set(n.Items[i])
		case ignoredFields[k.Text] != "" && sectionName != sectionOwn:
			p.warnf(k.Line, "the field %q has no effect: %s", k.Text, ignoredFields[k.Text])
		case sectionName == sectionOwn:
			p.failf(k.Line, "unknown field %q%s", textkit.Visible(k.Text), textkit.Suggest(k.Text, sortedNames(fields)))
		default:
			p.warnf(k.Line, "the field %q has no effect%s", textkit.Visible(k.Text), textkit.Suggest(k.Text, sortedNames(fields)))
		}
		seen[k.Text] = true
	}
	p.raw = raw
	p.checkEntry(key, n, &s)
	s.source = source
	return s
}

// ignoredFields are known fields of other programs that have no effect here, with the reason.
var ignoredFields = map[string]string{
	"autoApprove": "other programs do not decide what runs here; set approval", "alwaysAllow": "other programs do not decide what runs here; set approval",
	"trust":   "other programs do not decide what runs here; set trusted",
	"envFile": "put the variables into env", "timeout": "programs disagree about its unit; set call_timeout",
	"oauth": "log in with the authorization of this program", "auth": "log in with the authorization of this program",
}

// sharedFields are the fields that all forms have.
func (p *configParser) sharedFields(s *Server, source *serverSource) map[string]func(*configfile.Node) {
	type node = configfile.Node
	return map[string]func(*node){
		"command": func(n *node) { s.Command, source.command = p.expanded(n, "command"), n.Text },
		"args": func(n *node) {
			source.args = p.texts(n, "args")
			for i, a := range source.args {
				s.Args = append(s.Args, p.expand(n.Items[i], "args", a))
			}
		},
		"env":      func(n *node) { s.Env = p.pairs(n, "env", p.expanded) },
		"url":      func(n *node) { s.URL, source.url = p.expanded(n, "url"), n.Text },
		"headers":  func(n *node) { s.Headers = p.pairs(n, "headers", p.expanded) },
		"disabled": func(n *node) { s.Disabled = s.Disabled || p.boolean(n, "disabled") },
	}
}

// addForeignFields adds the fields of other programs.
func (p *configParser) addForeignFields(fields map[string]func(*configfile.Node), s *Server) {
	type node = configfile.Node
	fields["cwd"] = func(n *node) { s.Dir = p.expanded(n, "cwd") }
	fields["serverUrl"] = fields["url"] // Windsurf
	fields["httpUrl"] = fields["url"]   // Gemini CLI
	fields["enabled"] = func(n *node) { s.Disabled = s.Disabled || !p.boolean(n, "enabled") }
	fields["includeTools"] = func(n *node) { s.Include = append(s.Include, p.texts(n, "includeTools")...) }
	fields["excludeTools"] = func(n *node) { s.Exclude = append(s.Exclude, p.texts(n, "excludeTools")...) }
	fields["disabledTools"] = func(n *node) { s.Exclude = append(s.Exclude, p.texts(n, "disabledTools")...) }
	transport := func(n *node) {
		const stdio = "stdio"
		switch kind := p.text(n, "type"); kind {
		case stdio, "http", "sse", "streamable-http", "streamableHttp", "streamable_http", "local", "remote":
		default:
			p.failf(n.Line, "unknown type %q: want stdio, http or sse", textkit.Visible(clipText(kind)))
		}
	}
	fields["type"], fields["transport"] = transport, transport
}

// addOwnFields adds the settings of [Server].
func (p *configParser) addOwnFields(fields map[string]func(*configfile.Node), s *Server) {
	type node = configfile.Node
	fields["dir"] = func(n *node) { s.Dir = p.expanded(n, "dir") }
	fields["include"] = func(n *node) { s.Include = p.texts(n, "include") }
	fields["exclude"] = func(n *node) { s.Exclude = p.texts(n, "exclude") }
	fields["prefix"] = func(n *node) { s.Prefix = p.boolean(n, "prefix") }
	fields["namespace"] = func(n *node) { s.Namespace = p.text(n, "namespace") }
	fields["deferred"] = func(n *node) { s.Deferred = p.boolean(n, "deferred") }
	fields["trusted"] = func(n *node) { s.Trusted = p.boolean(n, "trusted") }
	fields["retry"] = func(n *node) { s.Retry = p.texts(n, "retry") }
	fields["connect_timeout"] = func(n *node) { s.ConnectTimeout = p.duration(n, "connect_timeout") }
	fields["call_timeout"] = func(n *node) { s.CallTimeout = p.duration(n, "call_timeout") }
	fields["max_call_time"] = func(n *node) { s.MaxCallTime = p.duration(n, "max_call_time") }
	fields["parallel"] = func(n *node) { s.Parallel = p.count(n, "parallel") }
	fields["revision"] = func(n *node) { s.Revision = p.text(n, "revision") }
	fields["approval"] = func(n *node) {
		s.Approval = p.pairs(n, "approval", func(n *node, what string) string {
			value := p.text(n, what)
			if value != "always" && value != "never" && n.Kind == configfile.String {
				p.failf(n.Line, "%s: want always or never", what)
			}
			return value
		})
	}
}

// checkEntry checks a server as a whole.
func (p *configParser) checkEntry(key, n *configfile.Node, s *Server) {
	has := func(names ...string) bool {
		return slices.ContainsFunc(n.Keys, func(k *configfile.Node) bool { return slices.Contains(names, k.Text) })
	}
	command, endpoint := has("command"), has("url", "serverUrl", "httpUrl")
	kind := ""
	for i, k := range n.Keys {
		if k.Text == "type" || k.Text == "transport" {
			kind = n.Items[i].Text
		}
	}
	switch {
	case command && endpoint:
		p.failf(key.Line, "the server has a command and a url: keep one")
	case !command && !endpoint:
		p.failf(key.Line, "the server needs a command or a url")
	case kind == "stdio" && !command:
		p.failf(key.Line, "the type is stdio, but the server has a url and no command")
	case kind != "" && kind != "stdio" && kind != "local" && !endpoint:
		p.failf(key.Line, "the type is for a url, but the server has a command")
	case command && s.Command == "" && !p.raw:
		p.failf(key.Line, "the command is empty")
	case endpoint && !strings.HasPrefix(s.URL, "http://") && !strings.HasPrefix(s.URL, "https://") && !strings.HasPrefix(s.URL, "${"):
		p.failf(key.Line, "the url does not begin with https:// or http://")
	}
	if words := strings.Fields(s.Command); len(words) > 1 && slices.Contains(runners, words[0]) {
		p.warnf(key.Line, "the command has spaces: put its arguments into args")
	}
	if endpoint && len(s.Env) > 0 {
		p.warnf(key.Line, "the field \"env\" has no effect on a server at a url")
	}
	if command && len(s.Headers) > 0 {
		p.warnf(key.Line, "the field \"headers\" has no effect on a server that is a command")
	}
}

func clipText(s string) string {
	const longest = 40
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}

// expand replaces the variables in a text.
func (p *configParser) expand(n *configfile.Node, what, text string) string {
	if p.raw || !strings.Contains(text, "${") {
		return text
	}
	var b strings.Builder
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			break
		}
		end := strings.IndexByte(text[start:], '}')
		if end < 0 {
			break
		}
		b.WriteString(text[:start])
		b.WriteString(p.variable(n, what, text[start+2:start+end]))
		text = text[start+end+1:]
	}
	return b.String() + text
}

// variable returns the value of what is between ${ and }.
func (p *configParser) variable(n *configfile.Node, what, body string) string {
	scheme, rest, _ := strings.Cut(body, ":")
	switch {
	case scheme == "input":
		return p.input(n, what, rest)
	case scheme == "env" && !strings.HasPrefix(rest, "-"):
		body = rest
	case body == "userHome":
		return p.folder(n, what, body, p.home)
	case body == "workspaceFolder":
		return p.folder(n, what, body, p.workspace)
	case body == "workspaceFolderBasename":
		return filepath.Base(p.folder(n, what, body, p.workspace))
	case body == "pathSeparator", body == "/":
		return string(filepath.Separator)
	case scheme == "command", scheme == "config":
		p.failf(n.Line, "%s: ${%s:…} works in VS Code only: write the value, or an environment variable", what, scheme)
		return ""
	}
	name, fallback, hasFallback := strings.Cut(body, ":-")
	if !isVariable(name) {
		p.warnf(n.Line, "%s: a text between ${ and } is not the name of a variable, and stays", what)
		return "${" + body + "}"
	}
	if v, ok := p.lookup(name); ok && (v != "" || !hasFallback) {
		return v
	}
	if !hasFallback {
		p.failf(n.Line, "%s: the environment variable %s is not set: set it, or write ${%s:-default}", what, name, name)
	}
	return fallback
}

func (p *configParser) folder(n *configfile.Node, what, name, value string) string {
	if value == "" {
		p.failf(n.Line, "%s: ${%s} is not known here: write the folder", what, name)
	}
	return value
}

// input returns the value of an input of VS Code: that of an environment variable.
func (p *configParser) input(n *configfile.Node, what, id string) string {
	in, declared := p.inputs[id]
	variable := inputVariable(id)
	if v, ok := p.lookup(variable); ok {
		return v
	}
	switch {
	case in.hasFallback:
		return in.fallback
	case !declared:
		p.failf(n.Line, "%s: the file has no input %q; set the environment variable %s for its value", what, textkit.Visible(clipText(id)), variable)
	default:
		p.failf(n.Line, "%s: the input %q has no value here: set the environment variable %s", what, textkit.Visible(clipText(id)), variable)
	}
	return ""
}

// inputVariable returns the environment variable for an input: INPUT_API_KEY for "api-key".
func inputVariable(id string) string {
	return "INPUT_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, clipText(id))
}

func isVariable(name string) bool {
	const longest = 200
	if name == "" || len(name) > longest || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		if !textkit.InSet("a-zA-Z0-9_", name[i]) {
			return false
		}
	}
	return true
}

// plainJSON returns JSON with comments and trailing commas replaced by spaces, so that every
// other byte keeps its place. It returns other files unchanged.
func plainJSON(data []byte) []byte {
	plain := blankComments(data)
	if !bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(plain, []byte("\ufeff")), " \t\r\n"), []byte("{")) {
		return data
	}
	// A comma after a value and before a closing bracket, outside of strings.
	comma, last := -1, byte('{')
	for i := 0; i < len(plain); i++ {
		c := plain[i]
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '"':
			i = stringEnd(plain, i)
		case '}', ']':
			if comma >= 0 {
				plain[comma] = ' '
			}
		}
		comma = -1
		if c == ',' && last != '{' && last != '[' && last != ',' {
			comma = i
		}
		last = c
	}
	return plain
}

// blankComments returns a copy of JSON with spaces instead of comments. Line ends stay.
func blankComments(data []byte) []byte {
	out := bytes.Clone(data)
	for i := 0; i < len(out); i++ {
		switch {
		case out[i] == '"':
			i = stringEnd(out, i)
		case out[i] == '/' && i+1 < len(out) && out[i+1] == '/':
			for ; i < len(out) && out[i] != '\n'; i++ {
				if out[i] != '\r' {
					out[i] = ' '
				}
			}
		case out[i] == '/' && i+1 < len(out) && out[i+1] == '*':
			end := len(out)
			if n := bytes.Index(out[i+2:], []byte("*/")); n >= 0 {
				end = i + 2 + n + 2
			}
			for ; i < end; i++ {
				if out[i] != '\n' && out[i] != '\r' {
					out[i] = ' '
				}
			}
			i--
		}
	}
	return out
}

// stringEnd returns the position of the quote that ends the string at i, or the last position.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"', '\n':
			return i
		}
	}
	return len(data)
}
