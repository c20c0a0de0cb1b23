package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/targets"
)

// setup is a config that is in use.
type setup struct {
	routes   *routeTable
	opened   map[string]*openRoute // by their patterns
	maxBody  int
	bodyTime time.Duration
	// buffered and bufferedByKey limit the bytes of buffered requests.
	buffered, bufferedByKey int64
	streams                 int
	heartbeat               time.Duration
	hosts                   []string // in the form of normalizeHost
	policies                policies
	mcpOrigins              []string
}

// route holds the models that may respond to a request.
type route struct {
	Route
	chain     *provider.Chain
	upstreams map[string]*upstream // by the names of the chain's links
}

// upstream is one model of a route.
type upstream struct {
	// client is nil if the model has no wire, such as one of the simulator.
	client  *provider.Client
	model   dragoman.Model
	dialect dragoman.Dialect
	// compared caches the result of takes for the last requested model.
	compared atomic.Pointer[comparison]
}

// newSetup opens the routes of a config. Their models use sender unless they have their own.
func newSetup(c *Config, sender *http.Client) (*setup, error) {
	s := &setup{maxBody: orElse(c.Limits.BodyBytes, defaultBodyBytes), heartbeat: orElse(c.Heartbeat, defaultHeartbeat), streams: c.Limits.Streams, opened: map[string]*openRoute{}}
	s.bodyTime = orElse(c.Limits.BodyTime, defaultBodyTime)
	s.buffered, s.bufferedByKey = c.Limits.buffers()
	for _, name := range c.Hosts {
		s.hosts = append(s.hosts, normalizeHost(name))
	}
	if c.MCP != nil {
		s.mcpOrigins = c.MCP.AllowedOrigins
	}
	list := c.Served()
	var err error
	if s.routes, err = newRouteTable(list); err != nil {
		return nil, err
	}
	if s.policies, err = newPolicies(c); err != nil {
		return nil, err
	}
	models := c.Models
	if models == nil {
		models = &provider.Config{}
	}
	for _, r := range list {
		o := &openRoute{Route: r, models: models, httpClient: sender}
		if _, err := o.open(sampleSpec(r.To)); err != nil {
			return nil, badRoute(r.Pattern, err.Error())
		}
		s.opened[r.Pattern] = o
	}
	return s, nil
}

func orElse[T comparable](v, other T) T {
	if v == *new(T) {
		return other
	}
	return v
}

// maxIdlePerHost is the maximum number of idle connections to one server, maxIdle to all. With the
// defaults of net/http most requests of a busy gateway would begin with a handshake.
const (
	maxIdlePerHost = 256
	maxIdle        = 1024
)

// newHTTPClient returns the HTTP client for requests to models.
func newHTTPClient() *http.Client {
	def, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // the program replaced it
		return &http.Client{}
	}
	t := def.Clone()
	t.MaxIdleConnsPerHost, t.MaxIdleConns = maxIdlePerHost, maxIdle
	t.WriteBufferSize = 2 << 10 // each waiting stream holds a buffer; large requests bypass it
	return &http.Client{Transport: t}
}

// impliedRoutes returns the routes of a config without routes: its aliases and providers by their
// names, or the simulator if it has neither. Once real models are configured, the simulator is
// not served, so that a misspelled name fails instead of getting a simulated answer.
func impliedRoutes(c *provider.Config) []Route {
	all := map[string]string{}
	if c != nil {
		for name := range c.Providers {
			all[name+"/*"] = name + "/*"
		}
		for name := range c.Aliases {
			all[name] = name
		}
	}
	if len(all) == 0 {
		all["sim/*"] = "sim/*"
		for _, name := range sim.Names() {
			bare := strings.TrimPrefix(name, "sim/")
			all[bare], all[bare+"?*"] = "sim/"+bare, "sim/"+bare+"?*" // settings may follow
		}
	}
	var out []Route
	for _, pattern := range slices.Sorted(maps.Keys(all)) {
		out = append(out, Route{Pattern: pattern, To: all[pattern]})
	}
	return out
}

// openRoute opens the models of a route: at once or, if their names contain the text that a
// star of the pattern matched, on request.
type openRoute struct {
	Route
	models     *provider.Config
	httpClient *http.Client

	mu     sync.Mutex
	opened map[string]*route
}

// maxOpened limits the models of one route that are cached.
const maxOpened = 1000

// routeFor returns the route for the requested model.
func (o *openRoute) routeFor(model string) (*route, error) {
	spec := o.To
	if before, after, ok := strings.Cut(o.Pattern, "*"); ok && strings.Contains(spec, "*") {
		text := strings.TrimSuffix(strings.TrimPrefix(model, before), after)
		if strings.Contains(text, ",") { // a list could name models that the route and the key do not allow
			return nil, errCommaInModel
		}
		spec = strings.TrimSpace(strings.ReplaceAll(spec, "*", text))
	}
	return o.openOnce(spec)
}

// errCommaInModel reports that a text cannot be the name of one model.
var errCommaInModel = errors.New("gateway: a model name must not contain a comma")

// metricName returns the name of a model in metrics, without text from the client: the number of
// such names is unbounded.
func (r *route) metricName(link string) string {
	provider, _, ok := strings.Cut(link, "/")
	if !ok || !strings.Contains(r.To, "*") || strings.Contains(r.To, link) {
		return link
	}
	return provider + "/*"
}

// openOnce opens the models of a spec, once.
func (o *openRoute) openOnce(spec string) (*route, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := o.opened[spec]; ok {
		return r, nil
	}
	r, err := o.open(spec)
	if err != nil {
		return nil, err
	}
	if len(o.opened) >= maxOpened || o.opened == nil {
		o.opened = map[string]*route{}
	}
	o.opened[spec] = r
	return r, nil
}

// open opens the models of a spec.
func (o *openRoute) open(spec string) (*route, error) {
	out := &route{Route: o.Route, upstreams: map[string]*upstream{}}
	model, err := o.models.Open(spec)
	if err != nil {
		return nil, err
	}
	chain, ok := model.(*provider.Chain)
	if !ok {
		name := spec
		if specs, err := o.models.Resolve(spec); err == nil && len(specs) == 1 {
			name = specs[0] // the model, not its alias
		}
		chain = &provider.Chain{Links: []provider.Link{{Name: name, Model: model}}}
	}
	out.chain = chain
	for _, link := range chain.Links {
		if out.upstreams[link.Name], err = o.upstream(link.Model); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// upstream returns the upstream for a model, with the capabilities of the route. Histories of
// clients may contain calls that will never get a result.
func (o *openRoute) upstream(model dragoman.Model) (*upstream, error) {
	client, ok := model.(*provider.Client)
	if !ok {
		return &upstream{model: model}, nil
	}
	client.Abandon = codes.AbandonPassed
	if client.HTTP == nil {
		client.HTTP = o.httpClient
	}
	up := &upstream{client: client, model: client, dialect: client.Dialect()}
	if len(o.Capabilities) == 0 {
		return up, nil
	}
	if err := configfile.ApplyCapabilities(&targets.Capabilities{}, o.Capabilities); err != nil {
		return nil, fmt.Errorf("capabilities: %w", err)
	}
	before := client.Override
	client.Override = func(caps *targets.Capabilities) {
		if before != nil {
			before(caps)
		}
		_ = configfile.ApplyCapabilities(caps, o.Capabilities) // cannot fail: it was applied above
	}
	return up, nil
}

// wire describes the API of the upstream; an empty one if the model has no wire.
func (up *upstream) wire() *wire.Wire { return dialects.WireOf(up.dialect) }

// stateful reports whether the upstream stores responses and their items.
func (up *upstream) stateful() bool { return up.wire().State.Responses }

// find returns the route of the requested model. The error for an unknown model lists models
// that the client may use.
func (s *setup) find(model string, allowed func(string) bool) (*route, error) {
	var found *route
	r, ok := s.routes.Find(model)
	var err error
	if ok {
		found, err = s.opened[r.Pattern].routeFor(model)
	}
	if err != nil || !ok {
		var more []string
		if ok {
			more = r.simulated(allowed)
		}
		meant := s.suggest(model, allowed, more...)
		if meant != "" {
			meant = "; did you mean " + meant + "?"
		}
		return nil, &dragoman.APIError{
			Class: dragoman.ErrorNotFound, Param: "model", Code: "model_not_found",
			Message: fmt.Sprintf("unknown model %.80q%s%s", model, s.describeNames(allowed), meant), Err: err,
		}
	}
	return found, nil
}

// simulated lists the names under which a pattern serves the models of the simulator, if
// it serves them.
func (r *Route) simulated(allowed func(string) bool) []string {
	if r.To != "sim/*" {
		return nil
	}
	var names []string
	for _, name := range sim.Names() {
		name = strings.Replace(r.Pattern, "*", strings.TrimPrefix(name, "sim/"), 1)
		if allowed(name) {
			names = append(names, name)
		}
	}
	return names
}

// maxSuggestFor is the longest name for which another one is suggested.
const maxSuggestFor = 128

// suggest returns a name that is served and allowed, and similar to the one that a client
// asked for; empty if there is none. more are further names.
func (s *setup) suggest(model string, allowed func(string) bool, more ...string) string {
	names := append(s.names(allowed), more...)
	if len(model) > maxSuggestFor || slices.Contains(names, model) {
		return ""
	}
	if name := textkit.Near(model, names); name != "" {
		return name
	}
	best, least := "", 0
	for i := range s.routes.patterns {
		route := &s.routes.patterns[i].route
		name, far := respell(model, route.Pattern)
		if name != "" && route.To != "sim/*" && (best == "" || far < least) && allowed(name) {
			best, least = name, far
		}
	}
	return best
}

// respell returns a name with its beginning replaced by that of a pattern such as "work/*" or
// "claude-*", if the two are similar, and the number of differences: for "worc/m" and "work/*" it
// is "work/m". The name is empty if they are not similar.
func respell(model, pattern string) (name string, far int) {
	begin, ok := strings.CutSuffix(pattern, "*")
	if !ok || strings.Contains(begin, "*") || len(begin) < 2 || !strings.ContainsRune("/-:._", rune(begin[len(begin)-1])) {
		return "", 0
	}
	sep := begin[len(begin)-1:]
	parts := strings.SplitAfterN(model, sep, strings.Count(begin, sep)+1)
	rest := parts[len(parts)-1]
	if len(parts) <= strings.Count(begin, sep) || rest == "" {
		return "", 0
	}
	head := strings.TrimSuffix(model, rest)
	far = textkit.Distance(strings.ToLower(head), strings.ToLower(begin))
	if far > (max(len(head), len(begin))-len(sep))/3 {
		return "", 0
	}
	return begin + rest, far
}

// names lists the names that are served and allowed.
func (s *setup) names(allowed func(string) bool) []string {
	return slices.DeleteFunc(s.routes.Names(), func(name string) bool { return !allowed(name) })
}

// describeNames lists some of the names and patterns that are served and allowed.
func (s *setup) describeNames(allowed func(string) bool) string {
	const most = 20
	names := s.names(allowed)
	for i := range s.routes.patterns {
		if pattern := s.routes.patterns[i].route.Pattern; allowed(pattern) {
			names = append(names, pattern)
		}
	}
	more := ""
	if len(names) > most {
		names, more = names[:most], ", …"
	}
	if len(names) == 0 {
		return ""
	}
	return ": known models are " + strings.Join(names, ", ") + more
}

// transparent reports whether a response can be passed through byte for byte: both ends use one
// dialect, and nothing has to change.
func (x *exchange) transparent(ctx context.Context, up *upstream) bool {
	switch {
	case up.client == nil, up.dialect != x.codec.Dialect(), x.route.Repair == repairAlways, x.route.LiftErrors, x.route.Unfinished == unfinishedEnd, !x.route.Set.IsZero():
		return false
	case x.call.IsVariant():
		return false
	case x.head.stream && !canPassThrough(x.codec): // such as a JSON array: the gateway requests event streams
		return false
	case x.history != nil: // the upstream does not have it
		return false
	case !up.acceptsSettings(x.head.model):
		return false
	default:
		return up.client.Transparent(ctx, x.head.model)
	}
}

// canPassThrough reports whether streams of the dialect can be passed through event by event.
func canPassThrough(codec dialect.Codec) bool {
	_, ok := wire.Of(codec).Stream.Framing.(framing.Lines)
	return ok
}

// acceptsSettings reports whether the model of the upstream accepts the settings of the requested
// model. A client sends settings for the model that it names. If the table of models knows
// both models and their rules differ, requests are not passed through.
func (up *upstream) acceptsSettings(requested string) bool {
	own := up.client.Model
	if own == "" || own == requested {
		return true
	}
	if last := up.compared.Load(); last != nil && last.model == requested {
		return last.same
	}
	theirs, known := up.client.Fact(requested)
	ours, alsoKnown := up.client.Fact(own)
	same := !known || !alsoKnown || reflect.DeepEqual(theirs.Capabilities(up.dialect), ours.Capabilities(up.dialect))
	up.compared.Store(&comparison{requested, same})
	return same
}

// comparison records whether a requested model has the same rules as the model of the
// upstream.
type comparison struct {
	model string
	same  bool
}

// hasDialect reports whether one of the route's upstreams uses a dialect.
func (r *route) hasDialect(d dragoman.Dialect) bool {
	for _, up := range r.upstreams {
		if up.dialect == d {
			return true
		}
	}
	return false
}

// hasLinkAfter reports whether a chain has a model to call if a link fails.
func hasLinkAfter(c *provider.Chain, link provider.Link) bool {
	at := slices.IndexFunc(c.Links, func(l provider.Link) bool { return l.Name == link.Name })
	return slices.ContainsFunc(c.Links[at+1:], func(l provider.Link) bool {
		_, skipped := c.Health.SkippedUntil(l.Name)
		return !skipped
	})
}
