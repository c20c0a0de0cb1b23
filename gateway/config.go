package gateway

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/gateway/access"
	admission "github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// The meaning of zero values of a [Config].
const (
	defaultListen      = "127.0.0.1:8088"
	defaultHeartbeat   = 15 * time.Second
	defaultStateTTL    = 24 * time.Hour
	defaultStateBytes  = 64_000_000
	defaultBodyBytes   = 32 << 20
	defaultHeaderBytes = 64 << 10
	defaultBodyTime    = time.Minute
	// defaultBufferedBytes and defaultBufferedBytesPerKey are raised if Limits.BodyBytes needs
	// more.
	defaultBufferedBytes       = 512 << 20
	defaultBufferedBytesPerKey = 256 << 20
)

// Config configures what a gateway serves, to whom and how. [Parse] reads it from a file. It
// must not be changed while it is in use.
type Config struct {
	// Listen is the address, host:port; empty means 127.0.0.1:8088.
	Listen string
	// Hosts are host names and addresses, without ports, that requests may name in a gateway
	// without keys, in addition to localhost, *.localhost and loopback addresses. With keys
	// every host name is accepted.
	Hosts []string
	// Keys lists the virtual keys that may use the gateway. Empty means that every client may,
	// which [Config.Check] allows on loopback only.
	Keys []access.Key
	// Routes map the model names that clients request to models.
	Routes []Route
	// Policy decides on every request before a model is called. KeyPolicies, by the names
	// of keys, decide on the requests of a key. A nil policy allows all. A request must be
	// allowed by both, and by [Route.Policy]. Rules match model calls and cannot ask; see
	// [policy.Policy.For].
	Policy      *policy.Policy
	KeyPolicies map[string]*policy.Policy
	// State configures the store for state that clients drop.
	State State
	// Heartbeat is the pause of a stream after which the gateway sends a keep-alive to the client;
	// zero means 15 seconds, a negative value never.
	Heartbeat time.Duration
	// Limits bound the requests of clients.
	Limits Limits
	// MCP configures the MCP servers behind /mcp; nil serves none.
	MCP *MCP
	// Models opens the models; nil means the built-in providers, with settings from the
	// environment.
	Models *provider.Config

	// Warnings lists settings that [Parse] accepted but that are probably mistakes, in file
	// order. They have no effect.
	Warnings []*provider.FileError
}

// Served returns the effective routes: those of the config. A config without routes serves each
// alias under its name, and each provider as name/*. A config without these, too, serves the
// models of the simulator, with and without their prefix.
func (c *Config) Served() []Route {
	if len(c.Routes) > 0 {
		return slices.Clone(c.Routes)
	}
	return impliedRoutes(c.Models)
}

// State configures where a gateway stores state that clients drop: in memory, or in a database.
// Set at most one database.
type State struct {
	// SQLite is the name of a database file.
	SQLite string
	// PostgresEnv is the environment variable with a PostgreSQL connection string, which may
	// contain a password.
	PostgresEnv string
	// TTL is the lifetime of entries; zero means 24 hours.
	TTL time.Duration
	// MaxBytes limits the state in memory; zero means 62500 KiB. A database has no such limit:
	// its entries expire.
	MaxBytes int64
}

// Limits bound the size of requests and how many are in progress.
type Limits struct {
	// BodyBytes is the maximum length of a request body; zero means 32 MiB.
	BodyBytes int
	// HeaderBytes is the maximum length of its headers; zero means 64 KiB.
	HeaderBytes int
	// Streams is the maximum number of concurrent responses; zero means no limit.
	Streams int
	// BodyTime limits the time in which a client must send its body; zero means one minute.
	BodyTime time.Duration
	// BufferedBytes limits the bodies of all requests in progress together, and
	// BufferedBytesPerKey those of one key; zero means 512 MiB and 256 MiB. A body counts from
	// its first byte until its request ends. Both must be larger than BodyBytes.
	BufferedBytes, BufferedBytesPerKey int64
}

// buffers returns the limits on buffered bytes.
func (l Limits) buffers() (total, perKey int64) {
	body := int64(orElse(l.BodyBytes, defaultBodyBytes))
	perKey = orElse(l.BufferedBytesPerKey, max(defaultBufferedBytesPerKey, 2*body))
	total = orElse(l.BufferedBytes, max(defaultBufferedBytes, perKey))
	return total, perKey
}

// Route maps the names that clients request to a model.
type Route struct {
	// Pattern is a model name, or a pattern in which * matches any text, including slashes.
	Pattern string
	// To is a spec for [provider.Config.Open]: a model, an alias, or a comma-separated list for
	// failover. A * in it is replaced with the text that the single * of the pattern matched.
	To string
	// Repair selects when conversations are made valid for their target: empty passes requests
	// that need no change through to their own dialect, "always" repairs every request.
	Repair string
	// LiftErrors converts the prefix "ERROR: " of a tool result into the error flag, for
	// clients whose dialect has no such flag.
	LiftErrors bool
	// Unfinished selects the end of a stream whose upstream stops without one: empty sends an
	// error, "end" a regular end, for upstreams that never send one.
	Unfinished string
	// NoStoredReasoning turns off storing reasoning for clients that drop it.
	NoStoredReasoning bool
	// Set overrides settings of the request.
	Set Overrides
	// Policy decides on requests of this route; nil allows all.
	Policy *policy.Policy
	// Capabilities override the facts about the models and servers of the route: names as
	// in a config file ("no_thinking"), with "true", "false" or a value. With capabilities
	// the route re-encodes every request instead of passing it through.
	Capabilities map[string]string
}

// The values of [Route.Repair].
const (
	// repairAuto passes a request through unchanged if the target uses its dialect and nothing
	// has to change.
	repairAuto = ""
	// repairAlways repairs every conversation.
	repairAlways = "always"
)

// The values of [Route.Unfinished].
const (
	// unfinishedError reports an error.
	unfinishedError = ""
	// unfinishedEnd writes a regular end, for upstreams that never send one.
	unfinishedEnd = "end"
)

// Overrides are settings that a route applies to every request. A zero field leaves the
// client's setting.
type Overrides struct {
	Temperature, TopP, FrequencyPenalty, PresencePenalty *dragoman.Number
	TopK, Seed, MaxTokens                                *int64
	// Effort, Verbosity and ServiceTier have the meaning of the fields of [dragoman.Request].
	Effort, Verbosity, ServiceTier string
	ParallelToolCalls              *bool
}

// IsZero reports whether o overrides nothing.
func (o Overrides) IsZero() bool { return o == Overrides{} }

// Apply sets the overridden fields of r. It does not change values that r points to.
func (o Overrides) Apply(r *dragoman.Request) {
	setIfGiven(&r.Sampling.Temperature, o.Temperature)
	setIfGiven(&r.Sampling.TopP, o.TopP)
	setIfGiven(&r.Sampling.FrequencyPenalty, o.FrequencyPenalty)
	setIfGiven(&r.Sampling.PresencePenalty, o.PresencePenalty)
	setIfGiven(&r.Sampling.TopK, o.TopK)
	setIfGiven(&r.Sampling.Seed, o.Seed)
	setIfGiven(&r.MaxOutputTokens, o.MaxTokens)
	setIfGiven(&r.ParallelToolCalls, o.ParallelToolCalls)
	if o.Verbosity != "" {
		r.Verbosity = o.Verbosity
	}
	if o.ServiceTier != "" {
		r.ServiceTier = o.ServiceTier
	}
	if o.Effort != "" {
		reasoning := dragoman.ReasoningSettings{}
		if r.Reasoning != nil {
			reasoning = *r.Reasoning
		}
		// The client's budget, or its request for no reasoning, would contradict the override.
		reasoning.Mode, reasoning.BudgetTokens, reasoning.Effort = codes.ReasoningDefault, nil, o.Effort
		r.Reasoning = &reasoning
	}
}

// setIfGiven sets a pointer to a copy of the given value, unless that is nil.
func setIfGiven[T any](to **T, given *T) {
	if given != nil {
		v := *given
		*to = &v
	}
}

// ConfigError reports an invalid setting of a [Config].
type ConfigError struct {
	Setting string
	Reason  string
}

func (e *ConfigError) Error() string { return "gateway: " + e.Setting + ": " + e.Reason }

// OpenRelayError reports a gateway that would let everyone on the network use its models
// (requirement G3).
type OpenRelayError struct{ Listen string }

func (e *OpenRelayError) Error() string {
	_, port, _ := net.SplitHostPort(e.Listen)
	return fmt.Sprintf("gateway: %s can be reached from other machines, and there are no keys; "+
		"give each client one under gateway.keys of the config file, or listen on 127.0.0.1:%s", e.Listen, port)
}

// Address returns the address to listen on.
func (c *Config) Address() string {
	if c.Listen == "" {
		return defaultListen
	}
	return c.Listen
}

// Check reports errors of a config, except in files: an invalid address, route, key, policy or
// limit, two databases for the state, or, as an [*OpenRelayError], an address beyond loopback
// without keys. Loopback means localhost and literal loopback addresses; other names are not
// resolved.
func (c *Config) Check() error {
	if reason := badAddress(c.Address()); reason != "" {
		return &ConfigError{Setting: "listen", Reason: reason}
	}
	for _, name := range c.Hosts {
		if reason := badHost(name); reason != "" {
			return &ConfigError{Setting: "hosts", Reason: fmt.Sprintf("%.80q: %s", name, reason)}
		}
	}
	if _, err := admission.New(c.Keys, admission.Options{}); err != nil {
		return err
	}
	if _, err := newRouteTable(c.Routes); err != nil {
		return err
	}
	if _, err := newPolicies(c); err != nil {
		return err
	}
	if c.State.SQLite != "" && c.State.PostgresEnv != "" {
		return &ConfigError{Setting: "state", Reason: "both sqlite and postgres_env are set: set one"}
	}
	if c.State.MaxBytes != 0 && (c.State.SQLite != "" || c.State.PostgresEnv != "") {
		return &ConfigError{Setting: "state", Reason: "max_bytes applies only to state in memory; for a database, set ttl"}
	}
	if err := c.checkValues(); err != nil {
		return err
	}
	if err := c.checkMCP(); err != nil {
		return err
	}
	if len(c.Keys) == 0 && !loopback(c.Address()) {
		return &OpenRelayError{Listen: c.Address()}
	}
	return nil
}

// checkValues finds invalid values that a program can set but a file cannot.
func (c *Config) checkValues() error {
	for _, v := range []struct {
		setting string
		n       int64
	}{
		{"limits.body_bytes", int64(c.Limits.BodyBytes)},
		{"limits.header_bytes", int64(c.Limits.HeaderBytes)},
		{"limits.streams", int64(c.Limits.Streams)},
		{"limits.body_time", int64(c.Limits.BodyTime)},
		{"limits.buffered_bytes", c.Limits.BufferedBytes},
		{"limits.buffered_bytes_per_key", c.Limits.BufferedBytesPerKey},
		{"state.ttl", int64(c.State.TTL)},
		{"state.max_bytes", c.State.MaxBytes},
	} {
		if v.n < 0 {
			return &ConfigError{Setting: v.setting, Reason: "must not be negative; 0 means the default"}
		}
	}
	total, perKey := c.Limits.buffers()
	if body := int64(orElse(c.Limits.BodyBytes, defaultBodyBytes)); total <= body || perKey <= body {
		return &ConfigError{Setting: "limits", Reason: fmt.Sprintf("buffered_bytes and buffered_bytes_per_key must be larger than body_bytes, which is %d", body)}
	}
	for _, r := range c.Routes {
		switch {
		case r.Repair != repairAuto && r.Repair != repairAlways:
			return badRoute(r.Pattern, fmt.Sprintf("repair: want always or empty, have %.40q", r.Repair))
		case r.Unfinished != unfinishedError && r.Unfinished != unfinishedEnd:
			return badRoute(r.Pattern, fmt.Sprintf("unfinished: want end or empty, have %.40q", r.Unfinished))
		}
	}
	return nil
}

// loopback reports whether only this machine can reach an address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// badAddress returns why an address is invalid, or "".
func badAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("want host:port such as %s, have %.80q", defaultListen, address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 || strconv.Itoa(n) != port {
		return fmt.Sprintf("want a port from 0 to 65535, have %.80q", port)
	}
	if strings.ContainsFunc(host, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`/\@?#"`, c) }) {
		return fmt.Sprintf("%.80q is not a valid host name", host)
	}
	return ""
}

// maxModel is the maximum length of a model name that is matched against patterns.
const maxModel = 1024

// routeTable finds the route of a model. It is safe for concurrent use.
type routeTable struct {
	exact map[string]Route
	// patterns are in match order.
	patterns []pattern
}

// pattern is a route with stars. The text before the first star is compared first: that is
// fast, and most patterns do not match.
type pattern struct {
	prefix string
	route  Route
}

// badRoute returns the error for an invalid [Route].
func badRoute(pattern, reason string) *ConfigError {
	return &ConfigError{Setting: fmt.Sprintf("route %q", pattern), Reason: reason}
}

// newRouteTable makes a routeTable from routes in any order. The error is a [*ConfigError].
func newRouteTable(list []Route) (*routeTable, error) {
	r := &routeTable{exact: map[string]Route{}}
	seen := map[string]string{}
	for _, route := range list {
		reason := badPattern(route.Pattern)
		same := mergeStars(route.Pattern)
		other, twice := seen[same]
		switch {
		case reason != "":
		case twice:
			reason = fmt.Sprintf("same pattern as %q; remove one of them", other)
		default:
			reason = badTarget(same, route.To)
		}
		if reason != "" {
			return nil, badRoute(route.Pattern, reason)
		}
		seen[same] = route.Pattern
		if prefix, _, ok := strings.Cut(same, "*"); ok {
			r.patterns = append(r.patterns, pattern{prefix, route})
		} else {
			r.exact[same] = route
		}
	}
	slices.SortFunc(r.patterns, func(a, b pattern) int {
		x, y := a.route.Pattern, b.route.Pattern
		return cmp.Or(literalLen(y)-literalLen(x), strings.Compare(x, y))
	})
	return r, nil
}

// Find returns the most specific route of a model: a route with exactly that name, otherwise
// the pattern with the most text outside its stars, otherwise the first of these in
// alphabetical order.
func (r *routeTable) Find(model string) (Route, bool) {
	if route, ok := r.exact[model]; ok {
		return route, true
	}
	if len(model) > maxModel {
		return Route{}, false
	}
	for i := range r.patterns {
		if p := &r.patterns[i]; strings.HasPrefix(model, p.prefix) && textkit.MatchStars(p.route.Pattern, model) {
			return p.route, true
		}
	}
	return Route{}, false
}

// withoutDefaultTag removes the tag that clients of a dialect may add to the name of a model; both
// names mean the same model. It keeps the tag if a route has exactly that name.
func (r *routeTable) withoutDefaultTag(model string, client dialect.Codec) string {
	if _, exact := r.exact[model]; exact {
		return model
	}
	return strings.TrimSuffix(model, wire.Of(client).Body.DefaultTag)
}

// Names returns the exact names, sorted, for model lists.
func (r *routeTable) Names() []string {
	names := make([]string, 0, len(r.exact))
	for name := range r.exact {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// badTarget returns why a pattern (with adjacent stars merged) cannot have the target to, or
// "".
func badTarget(same, to string) string {
	switch {
	case strings.TrimSpace(to) == "":
		return "the target is empty: write PROVIDER/MODEL"
	case strings.Contains(to, "*") && !strings.Contains(same, "*"):
		return "the target has a *, but the route name has none"
	case strings.Contains(to, "*") && strings.Count(same, "*") > 1:
		return "the target has a *, but the route name has several"
	}
	for spec := range strings.SplitSeq(to, ",") {
		if before, _, ok := strings.Cut(spec, "*"); ok && !strings.Contains(before, "/") {
			return fmt.Sprintf("a * can stand only for a part of the model name after the slash, as in sim/*; have %.80q", strings.TrimSpace(spec))
		}
	}
	return ""
}

// sampleSpec returns a spec with possible model names in place of its stars.
func sampleSpec(spec string) string {
	return strings.NewReplacer("sim/*", "sim/planner", "?*", "", "*", "model").Replace(spec)
}

// literalLen returns the length of the text of a pattern outside its stars.
func literalLen(text string) int { return len(text) - strings.Count(text, "*") }

// mergeStars returns a pattern with adjacent stars merged, which means the same.
func mergeStars(text string) string {
	for strings.Contains(text, "**") {
		text = strings.ReplaceAll(text, "**", "*")
	}
	return text
}

// badPattern returns what is wrong with a pattern for model names, or "".
func badPattern(text string) string {
	switch {
	case text == "":
		return "the name is empty; write * for every model"
	case strings.TrimSpace(text) != text:
		return "the name begins or ends with a space"
	case len(text) > maxModel:
		return fmt.Sprintf("the name is longer than %d bytes", maxModel)
	case strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }):
		return "the name has unprintable characters"
	default:
		return ""
	}
}
