package gateway

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// Load reads a config file; see [Parse].
func Load(name string, own ...extension.Extension) (*Config, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, data, own...)
}

// readFile reads a file, up to the length that the parser refuses.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	defer func() { _ = f.Close() }() // only read: a close error loses nothing
	data, err := io.ReadAll(io.LimitReader(f, framing.MaxConfigFile+1))
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return data, nil
}

// Parse reads a config file in YAML or JSON: the models, as [provider.Parse] does, and the
// gateway section. name is used in messages; own are additional extensions of the program. The
// error lists every problem, each as a [*provider.FileError], in file order.
//
//	version: 1
//	providers: {…}                        # these three as provider.Parse has them
//	aliases: {…}
//	failover: {…}
//	gateway:
//	  listen: 127.0.0.1:8088
//	  hosts: [host.docker.internal]       # without keys: host names to accept, in addition to loopback
//	  keys:
//	    team-search:
//	      key_env: TEAM_SEARCH_KEY        # a variable that holds the key, or a list of them, and
//	      key_sha256: 9f86d0…             # the same by its SHA-256 in hex; the key itself never stands here
//	      models: [gpt-4o, "local-*"]     # names that may be asked for; none: all
//	      requests_per_minute: 60
//	      tokens_per_minute: 200000
//	      parallel: 20
//	      budget: {tokens: 5000000, per: day, reserve: 4096}   # or hour, or month, in UTC
//	      fields: [provider]              # body fields that choose models, which this key may use
//	      hide_upstream: true             # do not name the upstream in response headers
//	      policy: search.yaml             # rules on model calls, for requests of this key
//	      mcp: [files, "issues/get_*"]    # MCP servers, or SERVER/TOOL, for this key; none: no MCP
//	      mcp_policy: tools.yaml          # rules on MCP calls of this key
//	  routes:                             # by the name that is asked for; * is any text
//	    claude-*: {to: "anthropic/claude-opus-5-5, best"}
//	    local-*: {to: "work/*"}           # with what the * stands for
//	    gpt-4o:
//	      to: fast
//	      repair: always                  # or auto
//	      lift_errors: true
//	      unfinished: end                 # or error
//	      store_reasoning: false
//	      set: {temperature: 0.2, max_tokens: 4096}
//	      policy: gpt.yaml                # for requests of this route
//	  policy: policy.yaml                 # for all requests; see package tool/policy
//	  state: {store: memory, ttl: 24h, max_bytes: 64000000}   # or sqlite: FILE, or postgres_env: VARIABLE
//	  mcp:                                # MCP servers, at /mcp and /mcp/SERVER
//	    servers:                          # with the fields of mcp_servers, see mcp.ReadConfig
//	      files: {command: npx, args: [-y, "@modelcontextprotocol/server-filesystem", /srv]}
//	      issues: {url: "https://mcp.example.com/mcp", headers: {Authorization: "Bearer ${ISSUES_TOKEN}"}}
//	    file: .mcp.json                   # or a file with servers, also in addition
//	    lock: dragoman.lock               # accepted definitions; none: what a server lists first
//	    policy: mcp.yaml                  # rules on all MCP calls
//	    approvals: client                 # the user of the client may approve calls; or none
//	    fence: false                      # true marks results as data for models
//	    allowed_origins: ["https://app.example.com"]
//	    names: prefixed                   # mcp_SERVER__TOOL at /mcp; or plain
//	    sessions: key                     # a connection to each server for each key; or shared
//	    result_chars: 4194304             # the limit of a result
//	    token_store: /var/lib/dragoman    # logins that dragoman mcp stored
//	    auth:                             # an OAuth client for a server
//	      issues: {client_id: gateway, client_secret_env: ISSUES_SECRET, issuer: "https://login.example.com", scopes: [read]}
//	  heartbeat: 15s                      # or none
//	  limits: {body_bytes: 33554432, header_bytes: 65536, streams: 0, body_time: 1m,
//	    buffered_bytes: 536870912, buffered_bytes_per_key: 268435456}
//
// Parse also checks that the config can be opened: every route leads to a model, the
// environment variables of keys are set, and the directory of an SQLite file exists.
// [Config.Check] checks whether the config may be served, and [Config.Served] returns the
// default routes. Config.Warnings lists probable mistakes: model names that a key allows and no
// route has, and missing credentials of providers.
func Parse(name string, data []byte, own ...extension.Extension) (*Config, error) {
	models, err := provider.Parse(name, data, own...)
	wrong := fileErrors(err)
	if err != nil && len(wrong) == 0 || len(data) > framing.MaxConfigFile {
		return nil, err
	}
	root, _ := configfile.Read(data) // provider.Parse reported its errors
	if root == nil {
		return nil, err
	}
	r := reader{config: &Config{Models: models}, probe: models}
	if models == nil {
		r.probe = namesOnly(root)
	}
	r.read(root)
	for _, e := range r.Errs {
		wrong = append(wrong, &provider.FileError{File: name, Line: e.Line, Column: e.Column, Reason: e.Reason})
	}
	if len(wrong) > 0 {
		return nil, joinFileErrors(wrong)
	}
	r.config.Warnings = r.warnings(name, root)
	return r.config, nil
}

// fileErrors returns the errors that [provider.Parse] joined.
func fileErrors(err error) (out []*provider.FileError) {
	var list interface{ Unwrap() []error }
	if !errors.As(err, &list) {
		return nil
	}
	for _, one := range list.Unwrap() {
		var bad *provider.FileError
		if errors.As(one, &bad) {
			out = append(out, bad)
		}
	}
	return out
}

// joinFileErrors returns the errors joined, in file order.
func joinFileErrors(wrong []*provider.FileError) error {
	sortFileErrors(wrong)
	all := make([]error, len(wrong))
	for i, e := range wrong {
		all[i] = e
	}
	return errors.Join(all...)
}

// sortFileErrors sorts errors by their position in the file.
func sortFileErrors(list []*provider.FileError) {
	slices.SortStableFunc(list, func(a, b *provider.FileError) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
}

type node = configfile.Node

// reader turns the gateway section of a file into a config and collects its errors.
type reader struct {
	configfile.Reader
	config *Config
	// probe opens the models of routes, to check them.
	probe *provider.Config
	// allowed holds the model names that keys allow, modelRefs the places that name the models of
	// routes.
	allowed   []*node
	modelRefs []modelRef
	// hostsAt is the position of the list of hosts; nil if there is none.
	hostsAt *node
	// keyMCP and keyMCPPolicy are the settings of keys for MCP, which need the servers.
	keyMCP, keyMCPPolicy []keyMCP
	mcpWarnings          []mcp.Warning
}

// modelRef is a place in the file that names models, with the opened models.
type modelRef struct {
	at    *node
	model dragoman.Model
}

func (r *reader) read(root *node) {
	if root.Kind != configfile.Map {
		return // provider.Parse reports it
	}
	for i, key := range root.Keys {
		if key.Text == "gateway" {
			r.gateway(root.Items[i])
			return // provider.Parse refused a second one
		}
	}
}

func (r *reader) gateway(n *node) {
	c := r.config
	r.Fields(n, "gateway", map[string]func(*node){
		"listen":    func(n *node) { c.Listen = r.listen(n) },
		"hosts":     func(n *node) { c.Hosts = r.hosts(n) },
		"keys":      r.keys,
		"routes":    r.routes,
		"policy":    func(n *node) { c.Policy = r.policy(n) },
		"state":     func(n *node) { c.State = r.state(n) },
		"heartbeat": func(n *node) { c.Heartbeat = r.heartbeat(n) },
		"limits":    func(n *node) { c.Limits = r.limits(n) },
		"mcp":       r.mcp,
	})
	r.mcpKeys()
}

func (r *reader) listen(n *node) string {
	if n.Kind == configfile.Number {
		r.Bad(n, "listen: want host:port, have the number %.20s; write 127.0.0.1:%.20s", n.Text, n.Text)
		return ""
	}
	address := r.String(n, "listen")
	if n.Kind != configfile.String {
		return ""
	}
	if reason := badAddress(address); reason != "" {
		r.Bad(n, "listen: %s", reason)
	}
	return address
}

func (r *reader) hosts(n *node) []string {
	r.hostsAt = n
	for _, item := range r.oneOrMore(n, "hosts") {
		if item.Kind != configfile.String {
			continue
		}
		if reason := badHost(item.Text); reason != "" {
			r.Bad(item, "hosts: %.80q: %s", item.Text, reason)
		}
	}
	return r.Strings(n, "hosts")
}

func (r *reader) heartbeat(n *node) time.Duration {
	if n.Kind == configfile.String && n.Text == "none" {
		return -1
	}
	return r.Duration(n, "heartbeat", ", or none")
}

func (r *reader) limits(n *node) (l Limits) {
	r.Fields(n, "limits", map[string]func(*node){
		"body_bytes":   func(n *node) { l.BodyBytes = r.Count(n, "body_bytes", 1) },
		"header_bytes": func(n *node) { l.HeaderBytes = r.Count(n, "header_bytes", 1) },
		"streams":      func(n *node) { l.Streams = r.Count(n, "streams", 0) },
		"body_time":    func(n *node) { l.BodyTime = r.Duration(n, "body_time", "") },
		"buffered_bytes": func(n *node) {
			l.BufferedBytes = int64(r.Count(n, "buffered_bytes", 1))
		},
		"buffered_bytes_per_key": func(n *node) {
			l.BufferedBytesPerKey = int64(r.Count(n, "buffered_bytes_per_key", 1))
		},
	})
	return l
}

func (r *reader) state(n *node) (s State) {
	places := 0
	place := func(read func(*node)) func(*node) {
		return func(n *node) {
			if places++; places > 1 {
				r.Bad(n, "state: set only one of store, sqlite and postgres_env")
			}
			read(n)
		}
	}
	r.Fields(n, "state", map[string]func(*node){
		"store": place(func(n *node) {
			if word := r.String(n, "store"); n.Kind == configfile.String && word != "memory" {
				r.Bad(n, "store: want memory, have %.80q; for a database, write sqlite: FILE or postgres_env: VARIABLE", word)
			}
		}),
		"sqlite": place(func(n *node) {
			if s.SQLite = r.String(n, "sqlite"); n.Kind == configfile.String {
				r.checkDirectory(n)
			}
		}),
		"postgres_env": place(func(n *node) { s.PostgresEnv, _ = r.variable(n, "postgres_env") }),
		"postgres": func(n *node) {
			r.Bad(n, "postgres: a config file must not contain a connection string; name an environment variable with postgres_env")
		},
		"ttl":       func(n *node) { s.TTL = r.Duration(n, "ttl", "") },
		"max_bytes": func(n *node) { s.MaxBytes = int64(r.Count(n, "max_bytes", 1)) },
	}, "postgres")
	return s
}

// checkDirectory refuses a database file whose directory does not exist: with a misspelled name
// the gateway would start without its state.
func (r *reader) checkDirectory(n *node) {
	if n.Text == "" {
		r.Bad(n, "sqlite: the file name is missing")
		return
	}
	folder := filepath.Dir(n.Text)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		r.Bad(n, "sqlite: the folder %.200s does not exist: create it first", folder)
	}
}

// variableName matches names that may appear in a message. If a user wrote a secret instead of
// a variable name, it must not appear in a log.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// variable reads the name of a variable that must be set, and its value.
func (r *reader) variable(n *node, what string) (name, value string) {
	name = r.String(n, what)
	if n.Kind != configfile.String {
		return "", ""
	}
	if !variableName.MatchString(name) {
		r.Bad(n, "%s: want the name of an environment variable: letters, digits and _", what)
		return "", ""
	}
	if value = strings.TrimSpace(os.Getenv(name)); value == "" {
		r.Bad(n, "%s: the environment variable %s is not set", what, name)
	}
	return name, value
}

func (r *reader) keys(n *node) {
	if n.Kind == configfile.Map && len(n.Keys) == 0 {
		r.Bad(n, "keys: the list is empty: add a key, or remove keys to serve only this machine")
	}
	owners := map[[32]byte]string{}
	r.Each(n, "keys", func(key, value *node) {
		k, secrets := r.key(key, value)
		for _, hash := range secrets {
			if owner, twice := owners[hash]; twice {
				r.Bad(key, "keys: %s has the same key as %s", key.Text, owner)
			}
			owners[hash] = key.Text
		}
		r.config.Keys = append(r.config.Keys, k)
	})
}

// keyName matches valid key names: they appear in logs and metrics.
var keyName = regexp.MustCompile(`^[\p{L}\p{N}_.@:/+-]{1,100}$`)

// key reads a key and the hashes of its secrets: usually one, and during a rotation the old and
// the new one.
func (r *reader) key(key, value *node) (k access.Key, secrets [][32]byte) {
	k.Name = key.Text
	if !keyName.MatchString(key.Text) {
		r.Bad(key, "keys: %.80q is not a valid key name: use letters, digits and _ . @ : / + -", key.Text)
	}
	what, named := "key "+key.Text, false
	read := func(field string, one func(*node) [32]byte) func(*node) {
		return func(n *node) {
			named = true
			for _, item := range r.oneOrMore(n, field) {
				if hash := one(item); hash != [32]byte{} {
					secrets = append(secrets, hash)
				}
			}
		}
	}
	r.Fields(value, what, map[string]func(*node){
		"key_env":    read("key_env", r.keyEnv),
		"key_sha256": read("key_sha256", r.keyHash),
		"key": func(n *node) {
			named = true
			r.Bad(n, "key: a config file must not contain a key; name an environment variable with key_env, or give its SHA-256 with key_sha256")
		},
		"models":              func(n *node) { k.Models = r.models(n) },
		"requests_per_minute": func(n *node) { k.RequestsPerMinute = r.Count(n, "requests_per_minute", 1) },
		"tokens_per_minute":   func(n *node) { k.TokensPerMinute = r.Count(n, "tokens_per_minute", 1) },
		"parallel":            func(n *node) { k.Parallel = r.Count(n, "parallel", 1) },
		"budget":              func(n *node) { k.Budget = r.budget(n) },
		"fields":              func(n *node) { k.Fields = r.fields(n) },
		"hide_upstream":       func(n *node) { k.HideUpstream = r.Bool(n, "hide_upstream") },
		"mcp":                 func(n *node) { r.keyMCP = append(r.keyMCP, keyMCP{k.Name, n, r.mcpPatterns(n)}) },
		"mcp_policy":          func(n *node) { r.keyMCPPolicy = append(r.keyMCPPolicy, keyMCP{name: k.Name, at: n}) },
		"policy": func(n *node) {
			if p := r.policy(n); p != nil {
				if r.config.KeyPolicies == nil {
					r.config.KeyPolicies = map[string]*policy.Policy{}
				}
				r.config.KeyPolicies[k.Name] = p
			}
		},
	}, "key")
	if value.Kind == configfile.Map && !named {
		r.Bad(key, "%s: the field key_env or key_sha256 is missing", what)
	}
	if len(secrets) > 0 {
		k.Hash, k.MoreHashes = secrets[0], append(k.MoreHashes, secrets[1:]...)
	}
	return k, secrets
}

// oneOrMore returns the items of a list, or a single value as a list.
func (r *reader) oneOrMore(n *node, what string) []*node {
	if n.Kind != configfile.List {
		return []*node{n}
	}
	if len(n.Items) == 0 {
		r.Bad(n, "%s: the list is empty", what)
	}
	return n.Items
}

// minKey is the minimum length of a key: shorter ones can be guessed.
const minKey = 16

func (r *reader) keyEnv(n *node) (hash [32]byte) {
	name, value := r.variable(n, "key_env")
	switch {
	case value == "":
		return hash
	case len(value) < minKey:
		r.Bad(n, "key_env: the key in %s is shorter than %d characters, so it could be guessed; create one with: openssl rand -hex 24", name, minKey)
	case strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c > '~' }):
		r.Bad(n, "key_env: the key in %s has characters that are not allowed in a header", name)
	}
	return access.HashOf(value)
}

// keyHash reads a hash. Errors do not repeat an invalid value, because it may be the key
// itself.
func (r *reader) keyHash(n *node) (hash [32]byte) {
	text := r.String(n, "key_sha256")
	if n.Kind != configfile.String {
		return hash
	}
	b, err := hex.DecodeString(text)
	switch {
	case err != nil || len(b) != len(hash):
		r.Bad(n, "key_sha256: want the 64 hexadecimal digits that printf %%s \"$KEY\" | sha256sum prints")
		return hash
	case [32]byte(b) == access.HashOf(""):
		r.Bad(n, "key_sha256: this is the hash of an empty key; is the variable set that was hashed?")
	case [32]byte(b) == hash:
		r.Bad(n, "key_sha256: the hash is all zeros")
	}
	return [32]byte(b)
}

// models reads the model names that a key allows.
func (r *reader) models(n *node) []string {
	at := n.Items
	switch {
	case n.Kind == configfile.String:
		at = []*node{n}
	case n.Kind == configfile.List && len(at) == 0:
		r.Bad(n, "models: the list is empty; remove it to allow all models")
	}
	r.allowed = append(r.allowed, at...)
	for _, item := range at {
		if reason := badPattern(item.Text); item.Kind == configfile.String && reason != "" {
			r.Bad(item, "models: %.80q: %s", item.Text, reason)
		}
	}
	return r.Strings(n, "models")
}

// fields reads the body fields that a key may use although they choose models.
func (r *reader) fields(n *node) []string {
	for _, item := range r.oneOrMore(n, "fields") {
		if item.Kind == configfile.String && item.Text == "" {
			r.Bad(item, "fields: the name is empty; write * for all")
		}
	}
	return r.Strings(n, "fields")
}

func (r *reader) budget(n *node) (b access.Budget) {
	r.Fields(n, "budget", map[string]func(*node){
		"tokens":  func(n *node) { b.Tokens = int64(r.Count(n, "tokens", 1)) },
		"reserve": func(n *node) { b.Reserve = int64(r.Count(n, "reserve", 1)) },
		"per": func(n *node) {
			b.Per = r.String(n, "per")
			if n.Kind == configfile.String && !slices.Contains(access.Periods(), b.Per) {
				r.Bad(n, "per: want hour, day or month, have %.80q", b.Per)
			}
		},
	})
	if n.Kind == configfile.Map {
		for _, name := range []string{"tokens", "per"} {
			if !slices.ContainsFunc(n.Keys, func(k *node) bool { return k.Text == name }) {
				r.Bad(n, "budget: the field %s is missing", name)
			}
		}
	}
	return b
}

func (r *reader) routes(n *node) {
	check := r.specChecker()
	seen := map[string]string{}
	r.Each(n, "routes", func(key, value *node) {
		route, to := r.route(key, value)
		reason := badPattern(key.Text)
		if other, twice := seen[mergeStars(key.Text)]; reason == "" && twice {
			reason = fmt.Sprintf("same pattern as %q; remove one of them", other)
		}
		if reason != "" {
			r.Bad(key, "routes: %.80q: %s", key.Text, reason)
		}
		seen[mergeStars(key.Text)] = key.Text
		if to != nil {
			r.target(to, route, check)
		}
		r.config.Routes = append(r.config.Routes, route)
	})
}

// target refuses a spec that a route cannot use.
func (r *reader) target(at *node, route Route, check func(at *node, spec string)) {
	if reason := badTarget(mergeStars(route.Pattern), route.To); reason != "" {
		r.Bad(at, "to: %s", reason)
		return
	}
	check(at, route.To)
}

// manyErrors is the number of errors after which no more routes are checked.
const manyErrors = 100

// namesOnly returns a config with the names of the providers and aliases of a file. If these
// have errors, routes are checked against it, so that all errors are reported at once. An
// error of an alias is not repeated for each of its routes.
func namesOnly(root *node) *provider.Config {
	c := &provider.Config{Providers: map[string]provider.Settings{}, Aliases: map[string]string{}}
	for i, key := range root.Keys {
		section := root.Items[i]
		if section.Kind != configfile.Map {
			continue
		}
		for _, name := range section.Keys {
			switch key.Text {
			case "providers":
				c.Providers[name.Text] = provider.Settings{Type: "compatible", BaseURL: "http://localhost"}
			case "aliases":
				c.Aliases[name.Text] = "sim/echo"
			}
		}
	}
	return c
}

// specChecker returns a function that reports an error for a spec that does not open. It opens
// models with a copy of the config, so that the config of the gateway is not changed.
func (r *reader) specChecker() func(at *node, spec string) {
	models := r.probe
	probe := &provider.Config{Providers: models.Providers, Aliases: models.Aliases, Extensions: models.Extensions, Failover: models.Failover, Models: models.Models, ModelFile: models.ModelFile, Getenv: models.Getenv}
	tried := map[string][]error{}
	return func(at *node, spec string) {
		if len(r.Errs) >= manyErrors {
			return
		}
		errs, known := tried[spec]
		if !known {
			model, err := probe.Open(sampleSpec(spec))
			if err != nil {
				errs = openErrors(probe, spec, err)
			}
			tried[spec] = errs
			r.modelRefs = append(r.modelRefs, modelRef{at, model})
		}
		for _, err := range errs {
			var bad *provider.SpecError
			if errors.As(err, &bad) {
				r.Bad(at, "to: %s", bad.Reason)
			} else {
				r.Bad(at, "to: %v", err)
			}
		}
	}
}

// openErrors returns the errors of the single models of a list that does not open, or err.
func openErrors(models *provider.Config, spec string, err error) (out []error) {
	var seen []string
	for s := range strings.SplitSeq(spec, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		if _, one := models.Open(sampleSpec(s)); one != nil && !slices.Contains(seen, one.Error()) {
			seen, out = append(seen, one.Error()), append(out, one)
		}
	}
	if out == nil {
		return []error{err}
	}
	return out
}

// route reads a route and its target; to is nil if the target is missing or invalid.
func (r *reader) route(key, value *node) (route Route, to *node) {
	route.Pattern = key.Text
	if value.Kind == configfile.String {
		r.Bad(value, "route %s: want a mapping, have a text; write {to: %q}", key.Text, value.Text)
		return route, nil
	}
	missing := value.Kind == configfile.Map
	r.Fields(value, "route "+key.Text, map[string]func(*node){
		"to": func(n *node) {
			missing = false
			before := len(r.Errs)
			if route.To = strings.Join(r.Strings(n, "to"), ", "); len(r.Errs) == before && n.Kind != configfile.Wrong {
				to = n
			}
		},
		"repair":      func(n *node) { route.Repair = r.keyword(n, "repair", "auto", "always") },
		"lift_errors": func(n *node) { route.LiftErrors = r.Bool(n, "lift_errors") },
		"unfinished":  func(n *node) { route.Unfinished = r.keyword(n, "unfinished", "error", "end") },
		"store_reasoning": func(n *node) {
			route.NoStoredReasoning = r.Want(n, configfile.Bool, "store_reasoning") && n.Text == "false"
		},
		"set":    func(n *node) { route.Set = r.overrides(n) },
		"policy": func(n *node) { route.Policy = r.policy(n) },
		"capabilities": func(n *node) {
			route.Capabilities = configfile.ReadCapabilities(&r.Reader, n)
		},
	})
	if missing {
		r.Bad(key, "route %s: the field to is missing", key.Text)
	}
	return route, to
}

// keyword reads one of several words. The first is the default, which becomes the zero value.
func (r *reader) keyword(n *node, what string, words ...string) string {
	word := r.String(n, what)
	if reason, ok := oneOf(word, words); !ok && n.Kind == configfile.String {
		r.Bad(n, "%s: %s", what, reason)
	}
	if word == words[0] {
		return ""
	}
	return word
}

func (r *reader) overrides(n *node) (o Overrides) {
	number := func(to **dragoman.Number, what string, low, high float64) func(*node) {
		return func(n *node) { *to = r.number(n, what, low, high) }
	}
	count := func(to **int64, what string, least int) func(*node) {
		return func(n *node) {
			v := int64(r.Count(n, what, least))
			*to = &v
		}
	}
	text := func(to *string, what string, words ...string) func(*node) {
		return func(n *node) {
			*to = r.String(n, what)
			if len(words) == 0 || n.Kind != configfile.String {
				return
			}
			if reason, ok := oneOf(*to, words); !ok {
				r.Bad(n, "%s: %s", what, reason)
			}
		}
	}
	r.Fields(n, "set", map[string]func(*node){
		"temperature":       number(&o.Temperature, "temperature", 0, 2),
		"top_p":             number(&o.TopP, "top_p", 0, 1),
		"frequency_penalty": number(&o.FrequencyPenalty, "frequency_penalty", -2, 2),
		"presence_penalty":  number(&o.PresencePenalty, "presence_penalty", -2, 2),
		"top_k":             count(&o.TopK, "top_k", 1),
		"seed":              count(&o.Seed, "seed", 0),
		"max_tokens":        count(&o.MaxTokens, "max_tokens", 1),
		"effort":            text(&o.Effort, "effort", efforts()...),
		"verbosity":         text(&o.Verbosity, "verbosity", "low", "medium", "high"),
		"service_tier":      text(&o.ServiceTier, "service_tier"),
		"parallel_tool_calls": func(n *node) {
			v := r.Bool(n, "parallel_tool_calls")
			o.ParallelToolCalls = &v
		},
	})
	return o
}

// number reads a number within limits and keeps its spelling.
func (r *reader) number(n *node, what string, low, high float64) *dragoman.Number {
	if !r.Want(n, configfile.Number, what) {
		return nil
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || v < low || v > high {
		r.Bad(n, "%s: want a number from %g to %g, have %.40s", what, low, high, n.Text)
		return nil
	}
	out := dragoman.Number(n.Text)
	return &out
}

// efforts returns the efforts of [dragoman.ReasoningSettings].
func efforts() []string {
	return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
}

// oneOf reports whether word is one of at least two words, and returns the error text if it is
// not.
func oneOf(word string, words []string) (reason string, ok bool) {
	if slices.Contains(words, word) {
		return "", true
	}
	last := len(words) - 1
	return fmt.Sprintf("want %s or %s, have %.80q", strings.Join(words[:last], ", "), words[last], word), false
}
