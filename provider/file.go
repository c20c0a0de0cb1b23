package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/schema"
)

// FileError reports an error in a config file with its position.
type FileError struct {
	File         string
	Line, Column int
	Reason       string
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// Load reads a config file; see [Parse].
func Load(name string, own ...extension.Extension) (*Config, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, data, own...)
}

// readFile reads a file, but at most one byte more than MaxConfigFile, so that the parser can
// report that it is too long.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("provider: %w", err)
	}
	defer func() { _ = f.Close() }() // the file was only read
	data, err := io.ReadAll(io.LimitReader(f, framing.MaxConfigFile+1))
	if err != nil {
		return nil, fmt.Errorf("provider: %w", err)
	}
	return data, nil
}

// Parse reads a config file in YAML or JSON. The name is used in error messages. The error
// reports everything that is wrong, each as a [*FileError] with its line.
//
//	version: 1
//	providers:
//	  work:                        # opened as work/…
//	    type: vllm                 # a built-in provider, or compatible
//	    base_url: https://llm.example.com/v1
//	    api_key_env: WORK_API_KEY  # a variable, or a list of them
//	    key_header: api-key        # if the key is not sent as a bearer token
//	    headers: {x-team: search}
//	    capabilities: {no_strict: true, reasoning_field: reasoning}
//	    extensions: {vllm: {enable_thinking: false}, openai.compatible: false}
//	    tags: [region:eu]          # turn extensions on and off
//	    models:
//	      small: {name: llama-9b-instruct, capabilities: {no_images: true}, tags: [tier:small]}
//	    timeouts: {connect: 5s, first_byte: 2m, idle: 30s, total: 10m}
//	    think_tags: marked         # <think> in the text becomes reasoning; open: the text begins within it
//	    retries: 4
//	    max_request_bytes: 8000000
//	    max_response_bytes: 8000000
//	    strict: serious            # refuse requests with losses of this severity
//	  cloud: {type: vertex, project: my-project, location: europe-west4} # a region for providers on AWS
//	model_file: models.yaml        # facts about models; relative to this file
//	aliases:
//	  fast: work/small
//	  best: anthropic/claude-opus-5-5, openai/gpt-5, fast
//	failover:                      # for lists of models
//	  always_continue: true        # continue even if the request itself is refused
//	  after: 3                     # failures in a row before a model is skipped
//	  cooldown: 30s                # for this long, doubled each time
//	  max_cooldown: 10m            # at most
//	gateway: {…}                   # ignored here: package gateway reads it
//
// The file must not contain credentials. [targets.Capabilities] documents the capabilities. The
// own extensions of the program become Config.Extensions, and the file may configure them.
// Settings turn on an extension that is off by default. Settings of an extension that the type
// of the provider keeps off are an error when a model is opened.
func Parse(name string, data []byte, own ...extension.Extension) (*Config, error) {
	fail := func(errs ...*configfile.Error) error {
		slices.SortStableFunc(errs, func(a, b *configfile.Error) int { return a.Line - b.Line })
		all := make([]error, len(errs))
		for i, e := range errs {
			all[i] = &FileError{File: name, Line: e.Line, Column: e.Column, Reason: e.Reason}
		}
		return errors.Join(all...)
	}
	if len(data) > framing.MaxConfigFile {
		return nil, fail(&configfile.Error{Line: 1, Column: 1, Reason: fmt.Sprintf("the file is longer than %d bytes", framing.MaxConfigFile)})
	}
	root, errs := configfile.Read(data)
	if root == nil {
		return nil, fail(errs...)
	}
	r := configReader{name: name, config: &Config{Extensions: own}}
	r.Errs = errs
	r.read(root)
	if len(r.Errs) > 0 {
		return nil, fail(r.Errs...)
	}
	return r.config, nil
}

// configReader converts the tree of a file to a Config.
type configReader struct {
	configfile.Reader
	name   string
	config *Config
	// aliases maps each alias to its node.
	aliases map[string]*configfile.Node
}

type node = configfile.Node

func (r *configReader) read(root *node) {
	version := false
	r.Fields(root, "config", map[string]func(*node){
		"version": func(n *node) {
			version = true
			if n.Kind != configfile.Number || n.Text != "1" {
				r.Bad(n, "version: this program supports only version 1")
			}
		},
		"providers": func(n *node) {
			r.config.Providers = map[string]Settings{}
			r.Each(n, "providers", func(key, value *node) { r.config.Providers[key.Text] = r.provider(key, value) })
		},
		"aliases": func(n *node) {
			r.config.Aliases, r.aliases = map[string]string{}, map[string]*node{}
			r.Each(n, "aliases", r.alias)
		},
		"failover": r.failover,
		"model_file": func(n *node) {
			file := r.String(n, "model_file")
			if file != "" && !filepath.IsAbs(file) {
				file = filepath.Join(filepath.Dir(r.name), file)
			}
			r.config.ModelFile = file
		},
		"gateway": func(*node) {}, // package gateway reads it
	})
	if root.Kind == configfile.Map && !version {
		r.Bad(root, "config: the field version is missing; write version: 1")
	}
	r.follow()
}

func (r *configReader) alias(key, value *node) {
	if key.Text == "" || strings.ContainsAny(key.Text, "/,") || strings.TrimSpace(key.Text) != key.Text {
		r.Bad(key, "aliases: %q is not a valid alias: it must not be empty, contain a slash or a comma, or begin or end with spaces", key.Text)
		return
	}
	r.config.Aliases[key.Text] = strings.Join(r.Strings(value, "alias "+key.Text), ",")
	r.aliases[key.Text] = value
}

// manyErrors is the number of errors after which aliases are no longer checked.
const manyErrors = 100

// follow reports aliases that lead nowhere. It follows each alias once and opens each provider
// once, however many aliases lead to it. It reports an error for the alias that names the
// provider.
func (r *configReader) follow() {
	walk := aliasWalk{aliases: r.config.Aliases, seen: map[string]bool{}, done: map[string]error{}}
	opened := map[string]error{}
	open := func(spec string) error {
		provider, model, _ := strings.Cut(spec, "/")
		if model == "" || provider == simName {
			_, err := r.config.open(spec)
			return err
		}
		err, known := opened[provider]
		if !known {
			_, err = r.config.open(spec)
			opened[provider] = err
		}
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.aliases)) {
		if len(r.Errs) >= manyErrors {
			return
		}
		seen := map[string]bool{}
		report := func(err error) {
			var bad *SpecError
			if errors.As(err, &bad) && !seen[bad.Reason] {
				seen[bad.Reason] = true
				r.Bad(r.aliases[name], "alias %s: %s", name, bad.Reason)
			}
		}
		report(walk.alias(name, nil))
		for s := range strings.SplitSeq(r.config.Aliases[name], ",") {
			s = strings.TrimSpace(s)
			if _, alias := r.config.Aliases[s]; s != "" && !alias {
				report(open(s))
			}
		}
	}
}

func (r *configReader) provider(key, value *node) (s Settings) {
	what := "provider " + key.Text
	if key.Text == "" || strings.ContainsAny(key.Text, "/, ") {
		r.Bad(key, "providers: %q is not a valid provider name", key.Text)
	}
	set := func(to *string, name string) func(*node) {
		return func(n *node) { *to = r.String(n, name) }
	}
	r.Fields(value, what, map[string]func(*node){
		"type": func(n *node) {
			s.Type = r.String(n, "type")
			if _, ok := builtinNamed(s.Type); !ok && n.Kind == configfile.String {
				known := append((&Config{}).providers(), "compatible")
				r.Bad(n, "type: %q is not one of %s%s", s.Type, strings.Join(known, ", "), textkit.Suggest(s.Type, known))
			}
		},
		"base_url":    func(n *node) { s.BaseURL = r.url(n) },
		"path":        set(&s.Path, "path"),
		"stream_path": set(&s.StreamPath, "stream_path"),
		"api_key_env": func(n *node) { s.APIKeyEnv = r.Strings(n, "api_key_env") },
		"api_key": func(n *node) {
			r.Bad(n, "api_key: credentials are not allowed in this file; name the variable that contains the key with api_key_env")
		},
		"key_header": func(n *node) {
			if s.KeyHeader = r.String(n, "key_header"); n.Kind == configfile.String && !isToken(s.KeyHeader) {
				r.Bad(n, "key_header: %.80q is not a valid header name", s.KeyHeader)
			}
		},
		"headers":      func(n *node) { s.Headers = r.headers(n) },
		"region":       set(&s.Region, "region"),
		"project":      set(&s.Project, "project"),
		"location":     set(&s.Location, "location"),
		"think_tags":   func(n *node) { s.ThinkTags = r.thinkTags(n) },
		"capabilities": func(n *node) { s.Capabilities = configfile.ReadCapabilities(&r.Reader, n) },
		"extensions":   func(n *node) { r.extensions(n, &s) },
		"tags":         func(n *node) { s.Tags = r.tags(n) },
		"models": func(n *node) {
			s.Models = map[string]ModelSettings{}
			r.Each(n, "models", func(key, value *node) { s.Models[key.Text] = r.model(value) })
		},
		"timeouts": func(n *node) { s.Timeouts = r.timeouts(n) },
		"retries":  func(n *node) { s.Retry.Max = r.retries(n) },

		"max_request_bytes":  func(n *node) { s.MaxRequestBytes = r.Count(n, "max_request_bytes", 1) },
		"max_response_bytes": func(n *node) { s.MaxResponseBytes = r.Count(n, "max_response_bytes", 1) },
		"strict":             func(n *node) { s.Strict = r.severity(n) },
	}, "api_key")
	if _, ok := builtinNamed(key.Text); !ok && s.Type == "" && value.Kind == configfile.Map && !slices.ContainsFunc(value.Keys, func(k *node) bool { return k.Text == "type" }) {
		r.Bad(key, "%s: the field type is missing; write compatible for any server with the OpenAI Chat API", what)
	}
	if s.Type == "compatible" && s.BaseURL == "" {
		r.Bad(value, "%s: the field base_url is missing; the type compatible has no default", what)
	}
	if b, ok := builtinNamed(cmp.Or(s.Type, key.Text)); ok {
		if setting, reason := uselessSetting(s, b); setting != "" {
			r.Bad(fieldOf(value, setting), "%s: %s: %s", what, setting, reason)
		} else if s.BaseURL != "" && s.Project+s.Location != "" {
			r.Bad(fieldOf(value, "base_url"), "%s: base_url replaces project and location; remove base_url or the other two", what)
		}
	}
	return s
}

// fieldOf returns the key node of a field, or the map itself if it does not have the field.
func fieldOf(m *node, name string) *node {
	for _, k := range m.Keys {
		if k.Text == name {
			return k
		}
	}
	return m
}

// extensions reads the settings of extensions, or true or false.
func (r *configReader) extensions(n *node, s *Settings) {
	known := r.extensionNames()
	r.Each(n, "extensions", func(key, value *node) {
		switch {
		case !slices.Contains(known, key.Text):
			r.Bad(key, "extensions: %q is not one of %s; pass custom extensions to Load or Parse", key.Text, strings.Join(known, ", "))
		case value.Kind == configfile.Bool && value.Text == "true":
			s.Switches.On = append(s.Switches.On, key.Text)
		case value.Kind == configfile.Bool:
			s.Switches.Off = append(s.Switches.Off, key.Text)
		case value.Kind == configfile.Map:
			if s.Extensions == nil {
				s.Extensions = map[string]json.RawMessage{}
			}
			s.Extensions[key.Text] = r.JSON(value, "extensions")
			r.settings(key, value, s.Extensions[key.Text])
			if r.optIn(key.Text) { // settings are the only way to turn it on and configure it
				s.Switches.On = append(s.Switches.On, key.Text)
			}
		default:
			r.Bad(value, "extensions: %s: want settings, true or false, have %s", key.Text, value.Kind)
		}
	})
}

// settings validates the settings of an extension against its schema.
func (r *configReader) settings(key, value *node, settings json.RawMessage) {
	for _, e := range r.known() {
		c, ok := e.(interface{ ConfigSchema() json.RawMessage })
		if e.Info().Name != key.Text || !ok {
			continue
		}
		v, err := schema.Compile(c.ConfigSchema())
		if err == nil {
			err = v.Validate(settings)
		}
		if err != nil {
			r.Bad(value, "extensions: %s: %v", key.Text, err)
		}
	}
}

// optIn reports whether an extension is off by default.
func (r *configReader) optIn(name string) bool {
	return slices.ContainsFunc(r.known(), func(e extension.Extension) bool { return e.Info().Name == name && e.Info().OptIn })
}

// known returns the extensions that a file may configure.
func (r *configReader) known() []extension.Extension {
	return slices.Concat(r.config.defaultExtensions(), r.config.Extensions)
}

// extensionNames returns their names.
func (r *configReader) extensionNames() (names []string) {
	for _, e := range r.known() {
		names = append(names, e.Info().Name)
	}
	return names
}

func (r *configReader) url(n *node) string {
	s := r.String(n, "base_url")
	if n.Kind != configfile.String {
		return ""
	}
	if _, err := parseBase(s); err != nil {
		var bad *SettingError
		if errors.As(err, &bad) {
			r.Bad(n, "base_url: %s", bad.Reason)
		}
	}
	return s
}

func (r *configReader) headers(n *node) map[string]string {
	out := map[string]string{}
	r.Each(n, "headers", func(key, value *node) {
		if !isToken(key.Text) {
			r.Bad(key, "headers: %.80q is not a valid header name", key.Text)
		}
		if out[key.Text] = r.String(value, "headers: "+key.Text); hasControlChars(out[key.Text]) {
			r.Bad(value, "headers: %s: the value has characters that are not allowed in a header", key.Text)
		}
	})
	return out
}

func (r *configReader) model(n *node) (m ModelSettings) {
	r.Fields(n, "model", map[string]func(*node){
		"name":         func(n *node) { m.Name = r.String(n, "name") },
		"capabilities": func(n *node) { m.Capabilities = configfile.ReadCapabilities(&r.Reader, n) },
		"tags":         func(n *node) { m.Tags = r.tags(n) },
	})
	return m
}

// tags reads a list of tags, or a single one.
func (r *configReader) tags(n *node) (tags []extension.Tag) {
	for _, s := range r.Strings(n, "tags") {
		t := extension.Tag(s)
		if err := t.Check(); err != nil {
			r.Bad(n, "tags: %v", err)
			continue
		}
		tags = append(tags, t)
	}
	return tags
}

// severity reads the severity from which losses are refused.
func (r *configReader) severity(n *node) *dragoman.Severity {
	var s dragoman.Severity
	if text := r.String(n, "strict"); n.Kind == configfile.String && s.UnmarshalText([]byte(text)) != nil {
		r.Bad(n, "strict: want info, warn or serious, have %.80q", text)
	}
	return &s
}

// thinkTags reads the setting think_tags.
func (r *configReader) thinkTags(n *node) string {
	switch t := r.String(n, "think_tags"); {
	case t == thinkTagsMarked || t == thinkTagsOpen:
		return t
	case n.Kind == configfile.String:
		r.Bad(n, "think_tags: want %s or %s, have %q", thinkTagsMarked, thinkTagsOpen, n.Text)
	}
	return thinkTagsOff
}

// failover reads the section failover.
func (r *configReader) failover(n *node) {
	f := &r.config.Failover
	r.Fields(n, "failover", map[string]func(*node){
		"always_continue": func(n *node) { f.AlwaysContinue = r.Bool(n, "always_continue") },
		"after":           func(n *node) { f.After = r.Count(n, "after", 1) },
		"cooldown":        func(n *node) { f.Cooldown = r.Duration(n, "cooldown", "") },
		"max_cooldown":    func(n *node) { f.MaxCooldown = r.Duration(n, "max_cooldown", "") },
	})
}

func (r *configReader) timeouts(n *node) (t Timeouts) {
	set := func(to *time.Duration, name string) func(*node) {
		return func(n *node) {
			if n.Kind == configfile.String && n.Text == "none" {
				*to = -1
				return
			}
			*to = r.Duration(n, name, ", or none")
		}
	}
	r.Fields(n, "timeouts", map[string]func(*node){
		"connect": set(&t.Connect, "connect"), "first_byte": set(&t.FirstByte, "first_byte"),
		"idle": set(&t.Idle, "idle"), "total": set(&t.Total, "total"),
	})
	return t
}

// retries reads the number of retries; in a file, 0 means none.
func (r *configReader) retries(n *node) int {
	if !r.Want(n, configfile.Number, "retries") {
		return 0
	}
	v, err := strconv.Atoi(n.Text)
	switch {
	case err != nil || v < 0 || v > 100:
		r.Bad(n, "retries: want a whole number up to 100, have %s", n.Text)
		return 0
	case v == 0:
		return -1
	default:
		return v
	}
}
