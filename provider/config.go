package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/models"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/provider/internal/servers"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/targets"
)

// Config holds the settings from which models are opened. The zero value has the built-in
// providers, with settings from the environment. It does not read the file that DRAGOMAN_CONFIG
// names: [Default] does. A Config is safe for concurrent use; its fields must not be changed,
// nor the Config copied, once it is in use.
type Config struct {
	// Providers are the caller's providers by name. They take precedence over built-in
	// providers of the same name.
	Providers map[string]Settings
	// Aliases maps names to specs, which may contain aliases again.
	Aliases map[string]string

	// Extensions are added to every [Client] that is opened, after the extensions that this
	// module has for servers and [extension.Compact]. An extension
	// replaces a built-in one of the same name.
	Extensions []extension.Extension

	// Models is the table of model facts; nil means the table of package models with the
	// changes in ModelFile.
	Models *models.Catalog
	// ModelFile names a file that adds entries to the table of model facts, or changes
	// them; see [models.Catalog.With]. Empty means none; [Default] then uses the variable
	// DRAGOMAN_MODELS. The file is read when the first model is opened.
	ModelFile string

	// Failover controls how chains continue after errors; zero values are those of [Chain] and
	// [Health].
	Failover Failover

	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string
	// Token returns access tokens for Google Cloud, for Vertex; nil means the variable
	// GOOGLE_OAUTH_ACCESS_TOKEN.
	Token Key
	// AWSKeys provides AWS credentials, for Bedrock; nil keys mean the environment.
	AWSKeys SigV4
	// Client, if set, is called with every [Client] that is opened, including the links of a
	// [Chain], before it is used. It may change the Client.
	Client func(*Client)
	// HTTP and Log are used by every [Client] that is opened. Log shows the wire traffic at
	// debug level, see [Client]. The simulator has no wire when it is opened as sim/…: its
	// requests and responses are logged in canonical form.
	HTTP *http.Client
	Log  *slog.Logger

	testClock clock // nil means the system clock

	once   sync.Once
	health Health

	// modelFileFrom is the environment variable that ModelFile was read from; empty if none.
	modelFileFrom string
	tableOnce     sync.Once
	table         *models.Catalog
	tableErr      error
}

// modelTable returns the table of model facts. Nil means the table of package models, which is
// loaded on first use.
func (c *Config) modelTable() (*models.Catalog, error) {
	if c.Models != nil {
		return c.Models, nil
	}
	c.tableOnce.Do(func() {
		if c.ModelFile == "" {
			return
		}
		var data []byte
		if data, c.tableErr = readFile(c.ModelFile); c.tableErr == nil {
			c.table, c.tableErr = models.Default().With(c.ModelFile, data)
		}
		c.tableErr = withVariable(c.modelFileFrom, c.tableErr)
	})
	return c.table, c.tableErr
}

// withVariable adds the variable that named a file to the error of opening it.
func withVariable(variable string, err error) error {
	var path *fs.PathError
	if variable != "" && errors.As(err, &path) {
		return fmt.Errorf("%s: %w", variable, err)
	}
	return err
}

// Failover controls how the chains of a [Config] continue after errors.
type Failover struct {
	// AlwaysContinue continues even after an error in the request itself; see [Chain].
	AlwaysContinue bool
	// After, Cooldown and MaxCooldown are the settings of [Health].
	After                 int
	Cooldown, MaxCooldown time.Duration
}

// Settings are the settings of one provider. Zero values mean the defaults of its type.
type Settings struct {
	// Type is the built-in provider that this one is based on. It determines the dialect, the
	// credential and the known gaps of the server. "compatible" is any server with the OpenAI
	// Chat API; "anthropic" with a BaseURL is any server with the Anthropic API. Empty means
	// the provider's own name.
	Type string
	// BaseURL, Path and StreamPath locate the API; see [Client].
	BaseURL, Path, StreamPath string
	// APIKeyEnv lists environment variables; the first one that is set holds the key. KeyHeader
	// is the header for the key, if it differs from the type's.
	APIKeyEnv []string
	KeyHeader string
	// Key returns the key, instead of the environment; nil means the environment.
	Key Key
	// Headers are sent with every request.
	Headers map[string]string
	// Region applies to Bedrock; Project and Location apply to Vertex.
	Region, Project, Location string
	// Capabilities override the known capabilities of the server and its models. Names are as
	// in a config file ("no_strict"); values are "true", "false" or a word.
	Capabilities map[string]string
	// Extensions holds the settings of extensions by name, such as {"deepseek": {"thinking":
	// "disabled"}}. It may name those in Config.Extensions, which a config file cannot name.
	// Switches turn extensions on or off regardless of tags.
	//
	// Settings of an extension that no request to this provider can turn on are an error.
	// Settings that a request does not use are reported among its losses.
	Extensions map[string]json.RawMessage
	Switches   extension.Switches
	// Tags are added to the tags of every request to this provider. They turn extensions on or
	// off.
	Tags []extension.Tag
	// ThinkTags is the setting of the same name in [Client].
	ThinkTags string
	// Models defines names for models of this provider.
	Models map[string]ModelSettings
	// Timeouts and Retry are the settings of the same names in [Client].
	Timeouts Timeouts
	Retry    Retry
	// MaxRequestBytes and MaxResponseBytes are the settings of the same names in [Client].
	MaxRequestBytes, MaxResponseBytes int
	// Strict is the setting of the same name in [Client].
	Strict *dragoman.Severity
}

// ModelSettings are the settings of one model of a provider.
type ModelSettings struct {
	// Name is the provider's name for the model; empty means the same name.
	Name string
	// Capabilities override those of the provider.
	Capabilities map[string]string
	// Tags are added to those of the provider.
	Tags []extension.Tag
}

// SpecError reports why a spec cannot be opened.
type SpecError struct {
	Spec   string
	Reason string
}

func (e *SpecError) Error() string { return fmt.Sprintf("provider: model %q: %s", e.Spec, e.Reason) }

// Open opens a model by its spec. A spec is one of:
//
//   - "provider/model"; everything after the first slash is the model
//   - an alias
//   - several of these, separated by commas: a [Chain] tries them in order
//
// Settings come from the environment, and from the file that the variable DRAGOMAN_CONFIG
// names, if it is set; see [Parse] for its format. Credentials are read when a request is sent,
// not before.
//
//	OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_ORG_ID, OPENAI_PROJECT_ID
//	ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, ANTHROPIC_BASE_URL
//	GEMINI_API_KEY or GOOGLE_API_KEY, GEMINI_BASE_URL or GOOGLE_GEMINI_BASE_URL
//	GOOGLE_CLOUD_PROJECT, GOOGLE_CLOUD_LOCATION, GOOGLE_OAUTH_ACCESS_TOKEN
//	OLLAMA_HOST, OLLAMA_API_KEY
//	AWS_REGION, AWS_BEARER_TOKEN_BEDROCK or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
//	BEDROCK_BASE_URL or AWS_ENDPOINT_URL_BEDROCK_RUNTIME
//
// The other built-in providers use NAME_API_KEY and NAME_BASE_URL: deepseek, mistral, groq,
// openrouter, xai, moonshot (or kimi), qwen (DASHSCOPE_API_KEY), zai (or glm), together,
// fireworks, cerebras, vllm, llamacpp and lmstudio.
//
// "openai" is the Responses API, "openai-chat" the older Chat Completions API.
//
// A base URL has the form that the vendor's own client takes: with /v1 for OpenAI and
// compatible servers (http://127.0.0.1:8080/v1), without it for Anthropic, Gemini, Ollama and
// Bedrock. The built-in providers do not send requests without their credential, even to your
// own server that requires none. The exceptions are "compatible", vllm, llamacpp, lmstudio and
// ollama.
//
// Use [WithBaseURL] and [WithKey] to set the base URL and the key in the program. To log, to use
// another transport or to add extensions, use [Config.Open].
func Open(spec string, opts ...Option) (dragoman.Model, error) {
	c, err := Default()
	if err != nil {
		return nil, err
	}
	return c.Open(spec, opts...)
}

// An Option changes the settings of the provider whose model is opened, for this model only. A
// list with models of several providers takes no options: put their settings into the Config.
type Option func(*Settings)

// WithBaseURL sends requests to another server of the same API, such as a proxy. The URL
// has the form that the vendor's own client takes; see [Open]. It overrides the
// environment and the config file.
func WithBaseURL(url string) Option { return func(s *Settings) { s.BaseURL = url } }

// WithKey sends a key that is not in the environment, such as one from a secret store:
//
//	model, err := provider.Open("anthropic/claude-opus-5-5", provider.WithKey(provider.FixedKey(secret)))
//
// It overrides the environment and the config file.
func WithKey(k Key) Option { return func(s *Settings) { s.Key = k } }

// Default returns the Config that [Open] uses: the file that the variable DRAGOMAN_CONFIG
// names, or an empty Config if it is not set. To set a log, an HTTP client or extensions,
// change the Config before you open models from it.
//
// If the config file names no file of model facts, the variable DRAGOMAN_MODELS does; see
// [Config.ModelFile].
func Default(own ...extension.Extension) (*Config, error) {
	c := &Config{Extensions: own}
	if file := os.Getenv("DRAGOMAN_CONFIG"); file != "" {
		var err error
		if c, err = Load(file, own...); err != nil {
			return nil, withVariable("DRAGOMAN_CONFIG", err)
		}
	}
	if c.ModelFile == "" {
		c.ModelFile, c.modelFileFrom = os.Getenv("DRAGOMAN_MODELS"), "DRAGOMAN_MODELS"
	}
	return c, nil
}

// MustOpen is like Open but panics if the model cannot be opened. It is for programs whose
// models are fixed in the source.
func MustOpen(spec string, opts ...Option) dragoman.Model {
	m, err := Open(spec, opts...)
	if err != nil {
		panic(err)
	}
	return m
}

// Open opens a model; see the function [Open] for the spec. It returns a new model each time:
//
//   - a [*Client] for a single model
//   - a [*Chain] of these for a spec with several models
//   - a model of package sim for "sim/…", which has no wire
//
// Chains that are opened from one Config share their Health.
func (c *Config) Open(spec string, opts ...Option) (dragoman.Model, error) {
	specs, err := c.Resolve(spec)
	if err != nil {
		return nil, err
	}
	if err := checkOptions(spec, specs, opts); err != nil {
		return nil, err
	}
	var links []Link
	for _, s := range specs {
		m, err := c.open(s, opts...)
		if err != nil {
			return nil, err
		}
		links = append(links, Link{Name: s, Model: m})
	}
	if len(links) == 1 {
		return links[0].Model, nil
	}
	c.once.Do(func() {
		c.health.testClock, c.health.After, c.health.Cooldown, c.health.MaxCooldown = c.testClock, c.Failover.After, c.Failover.Cooldown, c.Failover.MaxCooldown
	})
	return &Chain{Links: links, Health: &c.health, AlwaysContinue: c.Failover.AlwaysContinue, Log: c.Log}, nil
}

// checkOptions rejects options that would apply to no provider or to several.
func checkOptions(spec string, specs []string, opts []Option) error {
	if len(opts) == 0 {
		return nil
	}
	first, _, _ := strings.Cut(specs[0], "/")
	for _, s := range specs {
		name, _, _ := strings.Cut(s, "/")
		switch name {
		case simName:
			return &SpecError{Spec: spec, Reason: "the simulator runs in this process: it takes no options"}
		case first:
		default:
			return &SpecError{Spec: spec, Reason: fmt.Sprintf("options apply to one provider, and this spec names %s and %s: set them in provider.Config instead", first, name)}
		}
	}
	return nil
}

// Resolve expands a spec into the specs of single models: it splits lists and follows aliases.
// Each model appears once. Resolve does not check that the provider exists; Open does.
func (c *Config) Resolve(spec string) ([]string, error) {
	w := aliasWalk{aliases: c.Aliases, seen: map[string]bool{}, done: map[string]error{}}
	err := w.list(spec, nil)
	var bad *SpecError
	if errors.As(err, &bad) {
		bad.Spec = spec
	}
	return w.out, err
}

// maxAliases limits the length of a chain of aliases.
const maxAliases = 100

// aliasWalk follows aliases. It follows each alias once, however often it is named.
type aliasWalk struct {
	aliases map[string]string
	// out lists the names that are not aliases, each once; seen is the set of them.
	out  []string
	seen map[string]bool
	// done maps each followed alias to its error.
	done map[string]error
}

func (w *aliasWalk) list(list string, path []string) error {
	if strings.TrimSpace(list) == "" {
		return &SpecError{Spec: list, Reason: "the model is missing: write PROVIDER/MODEL"}
	}
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		switch _, ok := w.aliases[s]; {
		case s == "":
			return &SpecError{Spec: list, Reason: "a name in the comma-separated list is empty"}
		case ok:
			if err := w.alias(s, path); err != nil {
				return err
			}
		case !w.seen[s]:
			w.seen[s] = true
			w.out = append(w.out, s)
		}
	}
	return nil
}

func (w *aliasWalk) alias(name string, path []string) error {
	if slices.Contains(path, name) {
		return &SpecError{Spec: name, Reason: "the alias refers to itself: " + strings.Join(append(path, name), " → ")}
	}
	if err, done := w.done[name]; done {
		return err
	}
	if len(path) == maxAliases {
		return &SpecError{Spec: name, Reason: fmt.Sprintf("the chain of aliases is longer than %d", maxAliases)}
	}
	err := w.list(w.aliases[name], append(path[:len(path):len(path)], name))
	w.done[name] = err
	return err
}

// open opens one model.
func (c *Config) open(spec string, opts ...Option) (dragoman.Model, error) {
	name, model, ok := strings.Cut(spec, "/")
	settings, own := c.Providers[name]
	for _, opt := range opts {
		opt(&settings)
	}
	typ := settings.Type
	if typ == "" {
		typ = name
	}
	b, known := builtinNamed(typ)
	switch {
	case !ok && (own || known || name == simName):
		return nil, &SpecError{Spec: spec, Reason: "the model is missing: write " + name + "/MODEL"}
	case !ok:
		return nil, &SpecError{Spec: spec, Reason: "not an alias" + c.aliasHint() + "; a model is written as provider/model" + c.suggestSpec(spec)}
	case model == "":
		return nil, &SpecError{Spec: spec, Reason: "the model name after the slash is missing"}
	case name == simName && !own:
		return c.openSim(model)
	case !own && !known:
		return nil, &SpecError{Spec: spec, Reason: fmt.Sprintf("unknown provider %q: known providers are %s%s", name, joinSome(c.openable()), textkit.Suggest(name, c.allOpenable()))}
	case !known:
		return nil, &SettingError{Setting: "type of the provider " + name, Reason: fmt.Sprintf("%q is not one of %s", typ, strings.Join((&Config{}).providers(), ", "))}
	}
	return c.client(name, model, settings, b)
}

// providers returns the names of all providers.
func (c *Config) providers() []string {
	names := slices.Sorted(maps.Keys(c.Providers))
	for _, b := range builtins() {
		if b.base != noDefaultBase && !slices.Contains(names, b.name()) {
			names = append(names, b.name())
		}
	}
	return names
}

// openable returns the names that a spec may begin with.
func (c *Config) openable() []string {
	names := c.providers()
	if !slices.Contains(names, simName) {
		names = append(names, simName)
	}
	return names
}

// allOpenable returns all names that a spec may begin with, including the alternative names of
// providers.
func (c *Config) allOpenable() []string {
	names := c.openable()
	for _, b := range builtins() {
		if b.base != noDefaultBase {
			names = append(names, b.Names[1:]...)
		}
	}
	return names
}

// suggestSpec returns a hint for a spec without a provider: an alias or a model of the
// simulator with a similar name, the first provider known to serve a model of this name,
// or a known model with a similar name.
func (c *Config) suggestSpec(name string) string {
	if hint := textkit.Suggest(name, c.wholeSpecs()); hint != "" {
		return hint
	}
	table, _ := c.modelTable() // an unreadable model file is an error when a model is opened
	if table == nil {
		table = models.Default()
	}
	openable := c.openable()
	for _, p := range table.Providers() {
		m, ok := table.Lookup(p, name)
		if ok && !m.Resold && (m.How == codes.FoundByName || m.How == codes.FoundByPattern) && slices.Contains(openable, p) {
			return "; did you mean " + p + "/" + name + "?"
		}
	}
	var names []string
	specs := map[string]string{}
	for _, e := range table.Entries() {
		for _, n := range slices.Concat(e.Match, e.Aliases) {
			if specs[n] == "" && !strings.Contains(n, "*") && slices.Contains(openable, e.Provider) {
				names, specs[n] = append(names, n), e.Provider+"/"+n
			}
		}
	}
	if near := textkit.Near(name, names); near != "" {
		return "; did you mean " + specs[near] + "?"
	}
	return ""
}

// wholeSpecs returns the specs that are known as a whole: aliases, and the models of the
// simulator, which users may write without the provider name.
func (c *Config) wholeSpecs() []string {
	return append(slices.Sorted(maps.Keys(c.Aliases)), sim.Names()...)
}

// aliasHint returns the aliases as text for an error.
func (c *Config) aliasHint() string {
	if len(c.Aliases) == 0 {
		return ""
	}
	return " (there are " + joinSome(slices.Sorted(maps.Keys(c.Aliases))) + ")"
}

// joinSome joins names, and shortens a list that is too long to read.
func joinSome(names []string) string {
	const most = 50
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// client creates the client of one model.
func (c *Config) client(name, model string, s Settings, b builtin) (*Client, error) {
	m := s.Models[model]
	if m.Name == "" {
		m.Name = model
	}
	own := slices.Concat(s.Tags, m.Tags)
	if err := checkTags(name, own); err != nil {
		return nil, err
	}
	set, err := c.extensions(name, s, m, slices.Concat(serverTags(b.codec.Dialect(), name, b.serverName(), m.Name), own))
	if err != nil {
		return nil, err
	}
	table, err := c.modelTable()
	if err != nil {
		return nil, err
	}
	client := &Client{
		Name: name, Server: b.serverName(), Models: table, Codec: b.codec, Model: m.Name, Path: s.Path, StreamPath: s.StreamPath,
		ThinkTags: s.ThinkTags, Timeouts: s.Timeouts, Retry: s.Retry, MaxRequestBytes: s.MaxRequestBytes, MaxResponseBytes: s.MaxResponseBytes, Strict: s.Strict, HTTP: c.HTTP, testClock: c.testClock, Log: c.Log,
		Extensions: Extensions{
			Set: set, Switches: s.Switches, Config: s.Extensions, Tags: own,
		},
	}
	for _, h := range slices.Sorted(maps.Keys(s.Headers)) {
		setHeader(client, h, s.Headers[h])
	}
	if err := c.configure(client, s, b); err != nil {
		return nil, err
	}
	if c.Client != nil {
		c.Client(client)
	}
	return client, nil
}

// checkTags rejects invalid tags.
func checkTags(provider string, tags []extension.Tag) error {
	for _, t := range tags {
		if err := t.Check(); err != nil {
			return &SettingError{Setting: "tags of the provider " + provider, Reason: err.Error()}
		}
	}
	return nil
}

func setHeader(c *Client, name, value string) {
	if value == "" {
		return
	}
	if c.Header == nil {
		c.Header = http.Header{}
	}
	c.Header.Set(name, value)
}

// extensions returns the extensions of a provider: those for known servers, those of the
// caller, and the capabilities from the settings, which come last and override the others.
func (c *Config) extensions(provider string, s Settings, m ModelSettings, tags []extension.Tag) (*extension.Set, error) {
	last := overrides{provider: provider, sets: []map[string]string{s.Capabilities, m.Capabilities}}
	if err := last.apply(&targets.Capabilities{}); err != nil {
		return nil, err
	}
	set, err := extension.NewSet(slices.Concat(c.defaultExtensions(), c.Extensions, []extension.Extension{last})...)
	if err != nil {
		return nil, err
	}
	return set, checkSettings(provider, set, tags, &s)
}

// defaultExtensions returns the extensions that every config has: those of servers, and compaction,
// unless the caller has an extension of that name.
func (c *Config) defaultExtensions() []extension.Extension {
	all := servers.All()
	if slices.ContainsFunc(c.Extensions, func(e extension.Extension) bool { return e != nil && e.Info().Name == extension.CompactName }) {
		return all
	}
	return append(all, extension.Compact{})
}

// overrides holds capabilities that the settings set by name; later entries override earlier
// ones. It is an extension that is always on.
type overrides struct {
	provider string
	sets     []map[string]string
}

// Info returns no tags, so the extension is always on.
func (overrides) Info() extension.Info { return extension.Info{Name: "settings"} }

// Prepare applies the capabilities.
func (o overrides) Prepare(_ context.Context, x *extension.Exchange) error {
	return o.apply(&x.Target.Caps)
}

// Idle reports whether there are no capabilities to apply.
func (o overrides) Idle(json.RawMessage) bool {
	return !slices.ContainsFunc(o.sets, func(s map[string]string) bool { return len(s) > 0 })
}

func (o overrides) apply(caps *targets.Capabilities) error {
	for _, set := range o.sets {
		if err := configfile.ApplyCapabilities(caps, set); err != nil {
			return &SettingError{Setting: "capabilities of the provider " + o.provider, Reason: err.Error()}
		}
	}
	return nil
}
