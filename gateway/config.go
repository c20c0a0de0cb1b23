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
	"github.com/dragoman-go/dragoman/internal/text/glob"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// What zero values of a [Config] mean.
const (
	defaultListen      = "127.0.0.1:8088"
	defaultHeartbeat   = 15 * time.Second
	defaultStateTTL    = 24 * time.Hour
	defaultStateBytes  = 64_000_000
	defaultBodyBytes   = 32 << 20
	defaultHeaderBytes = 64 << 10
	defaultBodyTime    = time.Minute
	// defaultBufferedBytes and DefaultBufferedBytesPerKey are raised if Limits.BodyBytes
	// needs more.
	defaultBufferedBytes       = 512 << 20
	defaultBufferedBytesPerKey = 256 << 20
)

// Config says what a gateway serves, to whom and how. [Parse] reads one from a file.
// It must not be changed once it is in use.
type Config struct {
	// Listen is the address, host:port; empty means 127.0.0.1:8088.
	Listen string
	// Hosts are host names and addresses, without ports, that requests may name in a gateway
	// without keys, in addition to localhost, *.localhost and loopback addresses. With keys
	// every host name is accepted.
	Hosts []string
	// Keys are who may use it; none means everybody, which [Config.Check] allows on
	// loopback only.
	Keys []access.Key
	// Routes say which model stands behind a name that clients ask for.
	Routes []Route
	// Policy decides on every request before a model is called. KeyPolicies, by the names
	// of keys, decide on the requests of a key. A nil policy allows all. A request must be
	// allowed by both, and by [Route.Policy]. Rules match model calls and cannot ask; see
	// [policy.Policy.For].
	Policy      *policy.Policy
	KeyPolicies map[string]*policy.Policy
	// State is where it is kept what clients forget.
	State State
	// Heartbeat is how long a stream may be silent before the client is told that it
	// lives; zero means 15 seconds, below zero never.
	Heartbeat time.Duration
	// Limits bound what clients send.
	Limits Limits
	// Models is what models are opened from; nil means the built-in providers, with
	// settings from the environment.
	Models *provider.Config

	// Warnings are what [Parse] found that can be used and is most likely not meant, in
	// the order of the file. Nothing goes by them.
	Warnings []*provider.FileError
}

// Served are the routes by which models are found: those of the config or, where it has
// none, one for each of its aliases, by its name, and of its providers, as name/*. Where
// there is nothing of that either, the simulator's models are served, with and without
// their prefix.
func (c *Config) Served() []Route {
	if len(c.Routes) > 0 {
		return slices.Clone(c.Routes)
	}
	return implied(c.Models)
}

// State is where a gateway keeps what clients forget: in memory, unless a database
// is named. At most one may be.
type State struct {
	// SQLite is a file.
	SQLite string
	// PostgresEnv is the variable of the environment that holds a PostgreSQL
	// connection string, which may have a password in it.
	PostgresEnv string
	// TTL is how long it is kept; zero means 24 hours.
	TTL time.Duration
	// MaxBytes is how much is kept in memory; zero means 62500 KiB. A database
	// has no such bound: what is in it expires.
	MaxBytes int64
}

// Limits bound what clients send, and how much is under way.
type Limits struct {
	// BodyBytes is how long a request may be; zero means 32 MiB.
	BodyBytes int
	// HeaderBytes is how long its headers may be; zero means 64 KiB.
	HeaderBytes int
	// Streams is how many answers may be under way at once; zero means any number.
	Streams int
	// BodyTime bounds the time that a client takes to send a body; zero means
	// one minute.
	BodyTime time.Duration
	// BufferedBytes bounds the bodies of all requests under way together, and
	// BufferedBytesPerKey those of one key; zero means 512 MiB and
	// 256 MiB. A body counts from its first byte until its request
	// ends. Both must be larger than BodyBytes.
	BufferedBytes, BufferedBytesPerKey int64
}

// buffers are the bounds of buffered bytes.
func (l Limits) buffers() (total, perKey int64) {
	body := int64(orElse(l.BodyBytes, defaultBodyBytes))
	perKey = orElse(l.BufferedBytesPerKey, max(defaultBufferedBytesPerKey, 2*body))
	total = orElse(l.BufferedBytes, max(defaultBufferedBytes, perKey))
	return total, perKey
}

// Route leads from the names that clients ask for to a model.
type Route struct {
	// Pattern is a name, or several: * stands for any text, slashes too.
	Pattern string
	// To is a spec as [provider.Config.Open] takes it: a model, an alias, or several
	// with commas between them, which stand in for each other. A * in it is the text
	// that the one * of the pattern stands for.
	To string
	// Repair says when conversations are made valid for their target: empty passes what
	// needs no change through to its own dialect, "always" repairs everything.
	Repair string
	// LiftErrors takes "ERROR: " at the start of a tool's result for its error flag,
	// for clients whose dialect has none.
	LiftErrors bool
	// Unfinished says what a client gets if the stream of the upstream stops without its
	// end: empty means an error, "end" an end, for upstreams that never send one.
	Unfinished string
	// NoRecall keeps no reasoning for clients that drop it.
	NoRecall bool
	// Set overrides what clients ask for.
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
	// repairAuto leaves what goes to its own dialect with nothing to change as it
	// came.
	repairAuto = ""
	// repairAlways mends everything.
	repairAlways = "always"
)

// The values of [Route.Unfinished].
const (
	// unfinishedError tells it as the error it is.
	unfinishedError = ""
	// unfinishedEnd writes an end, for upstreams that never do.
	unfinishedEnd = "end"
)

// Overrides are what a route sets whatever clients ask for. Zero values leave it to
// them.
type Overrides struct {
	Temperature, TopP, FrequencyPenalty, PresencePenalty *dragoman.Number
	TopK, Seed, MaxTokens                                *int64
	// Effort, Verbosity and ServiceTier are as in a [dragoman.Request].
	Effort, Verbosity, ServiceTier string
	ParallelToolCalls              *bool
}

// IsZero reports whether nothing is overridden.
func (o Overrides) IsZero() bool { return o == Overrides{} }

// Apply sets what is overridden. Nothing that the request points to is changed.
func (o Overrides) Apply(r *dragoman.Request) {
	set(&r.Sampling.Temperature, o.Temperature)
	set(&r.Sampling.TopP, o.TopP)
	set(&r.Sampling.FrequencyPenalty, o.FrequencyPenalty)
	set(&r.Sampling.PresencePenalty, o.PresencePenalty)
	set(&r.Sampling.TopK, o.TopK)
	set(&r.Sampling.Seed, o.Seed)
	set(&r.MaxOutputTokens, o.MaxTokens)
	set(&r.ParallelToolCalls, o.ParallelToolCalls)
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
		// A budget of the client's, or that it wants none, would say otherwise.
		reasoning.Mode, reasoning.BudgetTokens, reasoning.Effort = codes.ReasoningDefault, nil, o.Effort
		r.Reasoning = &reasoning
	}
}

// set sets what is given, to a value of its own.
func set[T any](to **T, given *T) {
	if given != nil {
		v := *given
		*to = &v
	}
}

// ConfigError says what of a [Config] cannot be used.
type ConfigError struct {
	Setting string
	Reason  string
}

func (e *ConfigError) Error() string { return "gateway: " + e.Setting + ": " + e.Reason }

// OpenRelayError says that a gateway would let everybody who can reach it use its
// models (requirement G3).
type OpenRelayError struct{ Listen string }

func (e *OpenRelayError) Error() string {
	_, port, _ := net.SplitHostPort(e.Listen)
	return fmt.Sprintf("gateway: %s can be reached from other machines, and there are no keys; "+
		"give each client one under gateway.keys of the config file, or listen on 127.0.0.1:%s", e.Listen, port)
}

// Address is where to listen.
func (c *Config) Address() string {
	if c.Listen == "" {
		return defaultListen
	}
	return c.Listen
}

// Check says what of a config cannot be used, files aside: an address that is none, a
// route, a key, a policy or a bound that is wrong, two places for the state, or, an [*OpenRelayError], an
// address beyond loopback without any keys. Loopback is localhost and the loopback
// addresses as they are written; other names are not looked up.
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
	if _, err := newRoutes(c.Routes); err != nil {
		return err
	}
	if _, err := newPolicies(c); err != nil {
		return err
	}
	if c.State.SQLite != "" && c.State.PostgresEnv != "" {
		return &ConfigError{Setting: "state", Reason: "it is either in SQLite or in PostgreSQL"}
	}
	if c.State.MaxBytes != 0 && (c.State.SQLite != "" || c.State.PostgresEnv != "") {
		return &ConfigError{Setting: "state", Reason: "max_bytes bounds what is in memory; what is in a database expires by ttl"}
	}
	if err := c.checkValues(); err != nil {
		return err
	}
	if len(c.Keys) == 0 && !loopback(c.Address()) {
		return &OpenRelayError{Listen: c.Address()}
	}
	return nil
}

// checkValues finds values that a file cannot have, and a program may.
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
			return &ConfigError{Setting: v.setting, Reason: "it is negative; leave it zero for the default"}
		}
	}
	total, perKey := c.Limits.buffers()
	if body := int64(orElse(c.Limits.BodyBytes, defaultBodyBytes)); total <= body || perKey <= body {
		return &ConfigError{Setting: "limits", Reason: fmt.Sprintf("buffered_bytes and buffered_bytes_per_key must be larger than body_bytes, which is %d", body)}
	}
	for _, r := range c.Routes {
		switch {
		case r.Repair != repairAuto && r.Repair != repairAlways:
			return badRoute(r.Pattern, fmt.Sprintf("repair is %.40q, and not always or empty", r.Repair))
		case r.Unfinished != unfinishedError && r.Unfinished != unfinishedEnd:
			return badRoute(r.Pattern, fmt.Sprintf("unfinished is %.40q, and not end or empty", r.Unfinished))
		}
	}
	return nil
}

// loopback reports whether nobody but this machine can reach an address.
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

// badAddress says why nobody can listen on an address, or nothing.
func badAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("want host:port such as %s, have %.80q", defaultListen, address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 || strconv.Itoa(n) != port {
		return fmt.Sprintf("want a port from 0 to 65535, have %.80q", port)
	}
	if strings.ContainsFunc(host, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`/\@?#"`, c) }) {
		return fmt.Sprintf("%.80q is no name of a host", host)
	}
	return ""
}

// maxModel is how long a name of a model may be that a pattern is tried on.
const maxModel = 1024

// routeTable finds the route of a model. It is safe for concurrent use.
type routeTable struct {
	exact map[string]Route
	// patterns are in the order in which they are tried.
	patterns []pattern
}

// pattern is a route with stars. The text before the first is compared first: that is
// quick, and most do not fit.
type pattern struct {
	prefix string
	route  Route
}

// badRoute says what is wrong with a [Route].
func badRoute(pattern, reason string) *ConfigError {
	return &ConfigError{Setting: fmt.Sprintf("route %q", pattern), Reason: reason}
}

// newRoutes makes a routeTable of a list, whose order means nothing. The error is a
// [*ConfigError].
func newRoutes(list []Route) (*routeTable, error) {
	r := &routeTable{exact: map[string]Route{}}
	seen := map[string]string{}
	for _, route := range list {
		reason := badPattern(route.Pattern)
		same := plain(route.Pattern)
		other, twice := seen[same]
		switch {
		case reason != "":
		case twice:
			reason = fmt.Sprintf("it says the same as %q", other)
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
		return cmp.Or(literal(y)-literal(x), strings.Compare(x, y))
	})
	return r, nil
}

// Find is the most particular route of a model: one of exactly its name, else that of
// the pattern with the most text beside its stars, else the first of these in the
// order of the alphabet.
func (r *routeTable) Find(model string) (Route, bool) {
	if route, ok := r.exact[model]; ok {
		return route, true
	}
	if len(model) > maxModel {
		return Route{}, false
	}
	for i := range r.patterns {
		if p := &r.patterns[i]; strings.HasPrefix(model, p.prefix) && glob.MatchStars(p.route.Pattern, model) {
			return p.route, true
		}
	}
	return Route{}, false
}

// untagged removes the tag that clients of a dialect may add to the name of a model; both
// names mean the same model. It keeps the tag if a route has exactly that name.
func (r *routeTable) untagged(model string, client dialect.Codec) string {
	if _, exact := r.exact[model]; exact {
		return model
	}
	return strings.TrimSuffix(model, wire.Of(client).Body.DefaultTag)
}

// Names are the names that are exact, sorted: what can be listed.
func (r *routeTable) Names() []string {
	names := make([]string, 0, len(r.exact))
	for name := range r.exact {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// badTarget says why a pattern, whose stars in a row are one, cannot lead to a spec, or
// nothing.
func badTarget(same, to string) string {
	switch {
	case strings.TrimSpace(to) == "":
		return "it leads nowhere"
	case strings.Contains(to, "*") && !strings.Contains(same, "*"):
		return "its * would be the text that the * of the route's name stands for, and that name has none"
	case strings.Contains(to, "*") && strings.Count(same, "*") > 1:
		return "its * would be the text that the * of the route's name stands for, and that name has several"
	}
	for spec := range strings.SplitSeq(to, ",") {
		if before, _, ok := strings.Cut(spec, "*"); ok && !strings.Contains(before, "/") {
			return fmt.Sprintf("a * can be a part of a model's name only, behind the provider and its slash, as in sim/*; have %.80q", strings.TrimSpace(spec))
		}
	}
	return ""
}

// starless is a spec with names in the place of its stars, of models that may be there.
func starless(spec string) string {
	return strings.NewReplacer("sim/*", "sim/planner", "?*", "", "*", "model").Replace(spec)
}

// literal is how much text a pattern has beside its stars.
func literal(text string) int { return len(text) - strings.Count(text, "*") }

// plain is a pattern with stars in a row as one, which mean the same.
func plain(text string) string {
	for strings.Contains(text, "**") {
		text = strings.ReplaceAll(text, "**", "*")
	}
	return text
}

// badPattern says what is wrong with a pattern for names of models, or nothing.
func badPattern(text string) string {
	switch {
	case text == "":
		return "it is empty; write * for every model"
	case strings.TrimSpace(text) != text:
		return "it has spaces around it"
	case len(text) > maxModel:
		return fmt.Sprintf("it is longer than %d bytes", maxModel)
	case strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }):
		return "it has characters that no name of a model has"
	default:
		return ""
	}
}
