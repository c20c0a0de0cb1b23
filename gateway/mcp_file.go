package gateway

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/gateway/internal/mcpgate"
	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// keyMCP is a setting of a key for MCP.
type keyMCP struct {
	name     string
	at       *node
	patterns []*node
}

// mcp reads the section of MCP servers.
func (r *reader) mcp(n *node) {
	m := &MCP{Keys: map[string][]string{}, KeyPolicies: map[string]*policy.Policy{}}
	r.config.MCP = m
	var policyAt *node
	var auth []keyMCP
	r.Fields(n, "mcp", map[string]func(*node){
		"servers":         func(n *node) { m.Servers = append(m.Servers, r.mcpServers(n)...) },
		"file":            func(n *node) { m.Servers = append(m.Servers, r.mcpFile(n)...) },
		"lock":            func(n *node) { m.Lock = r.String(n, "lock"); r.mcpLock(n) },
		"policy":          func(n *node) { policyAt = n },
		"approvals":       func(n *node) { m.NoApprovals = r.keyword(n, "approvals", "client", "none") != "" },
		"fence":           func(n *node) { m.Fence = r.Bool(n, "fence") },
		"allowed_origins": func(n *node) { m.AllowedOrigins = r.mcpOrigins(n) },
		"names":           func(n *node) { m.PlainNames = r.keyword(n, "names", "prefixed", "plain") != "" },
		"sessions":        func(n *node) { m.SharedSessions = r.keyword(n, "sessions", "key", "shared") != "" },
		"result_chars":    func(n *node) { m.ResultChars = r.Count(n, "result_chars", 1) },
		"token_store":     func(n *node) { m.TokenStore = r.String(n, "token_store") },
		"auth": func(n *node) {
			r.Each(n, "auth", func(key, value *node) {
				if m.Auth == nil {
					m.Auth = map[string]MCPAuth{}
				}
				m.Auth[key.Text] = r.mcpAuth(key, value)
				auth = append(auth, keyMCP{name: key.Text, at: key})
			})
		},
	})
	if n.Kind != configfile.Map {
		return
	}
	if len(m.Servers) == 0 && len(r.Errs) == 0 {
		r.Bad(n, "mcp: there are no servers: add servers, or file")
	}
	for _, a := range auth {
		i := slices.IndexFunc(m.Servers, func(s mcp.Server) bool { return s.Label() == a.name })
		switch {
		case i < 0:
			r.Bad(a.at, "auth: there is no server %.80q", a.name)
		case m.Servers[i].URL == "":
			r.Bad(a.at, "auth: the server %.80q is a command, which gets credentials from its environment", a.name)
		}
	}
	if policyAt != nil {
		m.Policy = r.mcpPolicy(policyAt, "policy")
	}
}

// mcpServers reads servers with the reader of package mcp. The text that it gets has each value at
// the line of the file.
func (r *reader) mcpServers(n *node) []mcp.Server {
	if !r.Want(n, configfile.Map, "servers") {
		return nil
	}
	text := placed{line: 1}
	text.WriteString(`{"mcp_servers":`)
	text.value(n)
	text.WriteByte('}')
	servers, warnings, err := mcp.ParseConfig("", text.Bytes(), os.LookupEnv)
	r.mcpErrors(n, err, true)
	r.mcpWarnings = append(r.mcpWarnings, warnings...)
	return r.checkLabels(n, servers)
}

// placed writes a value as JSON with every part at its line.
type placed struct {
	bytes.Buffer
	line int
}

func (p *placed) value(n *node) {
	for ; p.line < n.Line; p.line++ {
		p.WriteByte('\n')
	}
	switch n.Kind {
	case configfile.Map:
		p.WriteByte('{')
		for i, key := range n.Keys {
			if i > 0 {
				p.WriteByte(',')
			}
			for ; p.line < key.Line; p.line++ {
				p.WriteByte('\n')
			}
			p.Write(jsonwire.Quote(key.Text))
			p.WriteByte(':')
			p.value(n.Items[i])
		}
		p.WriteByte('}')
	case configfile.List:
		p.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				p.WriteByte(',')
			}
			p.value(item)
		}
		p.WriteByte(']')
	case configfile.Number, configfile.Bool:
		p.WriteString(n.Text)
	case configfile.String:
		p.Write(jsonwire.Quote(n.Text))
	default:
		p.WriteString("null")
	}
}

// mcpErrors reports the errors of the reader of package mcp. here says that they are about this
// file, so that their lines are those of it.
func (r *reader) mcpErrors(n *node, err error, here bool) {
	if err == nil {
		return
	}
	list := []error{err}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		list = joined.Unwrap()
	}
	for _, one := range list {
		var bad *mcp.ConfigError
		if !errors.As(one, &bad) {
			r.Bad(n, "%s", strings.TrimPrefix(one.Error(), "mcp: "))
			continue
		}
		at := n
		if here {
			at = &node{Line: bad.Line, Column: 1}
		}
		text := bad.Reason
		if bad.Server != "" {
			text = "server " + bad.Server + ": " + text
		}
		if !here {
			text = strings.TrimPrefix(bad.Error(), "mcp: ")
		}
		r.Bad(at, "mcp: %s", text)
	}
}

// mcpFile reads a file of servers.
func (r *reader) mcpFile(n *node) []mcp.Server {
	file := r.String(n, "file")
	if n.Kind != configfile.String {
		return nil
	}
	servers, warnings, err := mcp.ReadConfig(file)
	r.mcpErrors(n, err, false)
	r.mcpWarnings = append(r.mcpWarnings, warnings...)
	if err == nil && len(servers) == 0 {
		r.Bad(n, "file: %s lists no servers", file)
	}
	return r.checkLabels(n, servers)
}

// mcpLabel matches labels of servers that a path and a pattern can have.
var mcpLabel = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

func (r *reader) checkLabels(n *node, servers []mcp.Server) []mcp.Server {
	for _, s := range servers {
		if !mcpLabel.MatchString(s.Label()) {
			r.Bad(n, "mcp: the server %.80q needs a name of letters, digits and _ . -, because it is part of the path /mcp/NAME", s.Label())
		}
		if r.config.MCP != nil && slices.ContainsFunc(r.config.MCP.Servers, func(o mcp.Server) bool { return o.Label() == s.Label() }) {
			r.Bad(n, "mcp: two servers have the name %.80q", s.Label())
		}
	}
	return servers
}

// mcpLock refuses a lock file that cannot be read. A missing one is empty.
func (r *reader) mcpLock(n *node) {
	if n.Kind != configfile.String {
		return
	}
	if n.Text == "" {
		r.Bad(n, "lock: the file name is missing")
		return
	}
	if _, err := mcp.OpenLock(n.Text); err != nil {
		r.Bad(n, "lock: %s", strings.TrimPrefix(err.Error(), "mcp: "))
	}
}

func (r *reader) mcpOrigins(n *node) []string {
	for _, item := range r.oneOrMore(n, "allowed_origins") {
		if reason := badOrigin(item.Text); item.Kind == configfile.String && reason != "" {
			r.Bad(item, "allowed_origins: %.200q: %s", item.Text, reason)
		}
	}
	return r.Strings(n, "allowed_origins")
}

func (r *reader) mcpAuth(key, n *node) (a MCPAuth) {
	r.Fields(n, "auth "+key.Text, map[string]func(*node){
		"client_id":         func(n *node) { a.ClientID = r.String(n, "client_id") },
		"client_secret_env": func(n *node) { a.ClientSecretEnv, _ = r.variable(n, "client_secret_env") },
		"client_secret": func(n *node) {
			r.Bad(n, "client_secret: a config file must not contain a secret; name an environment variable with client_secret_env")
		},
		"issuer": func(n *node) { a.Issuer = r.String(n, "issuer") },
		"scopes": func(n *node) { a.Scopes = r.Strings(n, "scopes") },
	}, "client_secret")
	if n.Kind == configfile.Map && (a.ClientID == "" || a.ClientSecretEnv == "") {
		r.Bad(key, "auth %s: client_id and client_secret_env are needed", key.Text)
	}
	return a
}

// mcpPatterns reads the patterns of a key.
func (r *reader) mcpPatterns(n *node) []*node {
	items := r.oneOrMore(n, "mcp")
	if n.Kind == configfile.List && len(items) == 0 {
		return nil
	}
	_ = r.Strings(n, "mcp") // which reports values that are no text
	return items
}

// mcpPolicy reads a policy on MCP calls. The servers are known.
func (r *reader) mcpPolicy(n *node, what string) *policy.Policy {
	file := r.String(n, what)
	if n.Kind != configfile.String {
		return nil
	}
	if strings.TrimSpace(file) == "" {
		r.Bad(n, "%s: the file name is missing", what)
		return nil
	}
	p, err := policy.Load(file)
	if err == nil {
		_, err = p.For(mcpgate.Host(r.config.MCP.Servers, r.config.MCP.NoApprovals))
	}
	if err != nil {
		r.Bad(n, "%s: %s", what, strings.TrimPrefix(err.Error(), "policy: "))
		return nil
	}
	return p
}

// mcpKeys checks the settings of keys for MCP against the servers.
func (r *reader) mcpKeys() {
	m := r.config.MCP
	if m == nil {
		for _, k := range slices.Concat(r.keyMCP, r.keyMCPPolicy) {
			r.Bad(k.at, "mcp: the section gateway.mcp with the servers is missing")
		}
		return
	}
	for _, k := range r.keyMCP {
		m.Keys[k.name] = []string{}
		for _, item := range k.patterns {
			if item.Kind != configfile.String {
				continue
			}
			if reason := mcpgate.CheckPattern(item.Text, m.Servers); reason != "" {
				r.Bad(item, "mcp: %.80q can never match: %s", item.Text, reason)
			}
			m.Keys[k.name] = append(m.Keys[k.name], item.Text)
		}
	}
	for _, k := range r.keyMCPPolicy {
		if len(m.Keys[k.name]) == 0 {
			r.Bad(k.at, "mcp_policy: the key %s may use no MCP server, so no rule can apply: add mcp", k.name)
			continue
		}
		if p := r.mcpPolicy(k.at, "mcp_policy"); p != nil {
			m.KeyPolicies[k.name] = p
		}
	}
}
