package provider

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

func (c *Config) env(names ...string) string {
	getenv := c.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	return firstOf(getenv, names...)
}

// place sets the URL and the credential of a client.
func (c *Config) place(client *Client, s Settings, b builtin) error {
	if setting, reason := misplaced(s, b); setting != "" {
		return &SettingError{Setting: setting + " of the provider " + client.Name, Reason: reason}
	}
	client.BaseURL = s.BaseURL
	if client.BaseURL == "" {
		client.BaseURL = c.env(b.baseVariables()...)
	}
	client.Auth, client.setKey = c.auth(s, b), howToSetKey(s, b)
	switch b.names[0] {
	case "openai", "openai-chat":
		setHeader(client, "OpenAI-Organization", c.env("OPENAI_ORG_ID"))
		setHeader(client, "OpenAI-Project", c.env("OPENAI_PROJECT_ID"))
	case "ollama":
		client.BaseURL = ollamaURL(client.BaseURL)
	case "vertex":
		c.placeVertex(client, s)
	case "bedrock":
		c.placeBedrock(client, s)
	}
	if client.BaseURL == "" {
		client.BaseURL = b.base
	}
	if client.BaseURL == nowhere {
		return &SettingError{Setting: "base_url of the provider " + client.Name, Reason: "it is missing, and the type has no default"}
	}
	if client.BaseURL == "" {
		return nil
	}
	_, err := parseBase(client.BaseURL)
	return err
}

// auth is the credential of a provider. It is looked for when it is needed.
func (c *Config) auth(s Settings, b builtin) Auth {
	variables, header := b.keyEnv, b.header
	if len(s.APIKeyEnv) > 0 {
		variables = s.APIKeyEnv
	}
	if s.KeyHeader != "" {
		header = s.KeyHeader
	}
	switch {
	case b.names[0] == "vertex" && len(s.APIKeyEnv) == 0 && c.Token != nil:
		return Token(c.Token)
	case b.names[0] == "vertex":
		return Token(c.key(variables))
	case len(variables) == 0:
		return nil
	case b.keyless && len(s.APIKeyEnv) == 0:
		return optionalAuth{c.keyAuth(header, variables), func() bool { return c.env(variables...) != "" }}
	case b.names[0] == "anthropic" && len(s.APIKeyEnv) == 0 && s.KeyHeader == "":
		return anthropicAuth{c}
	}
	return c.keyAuth(header, variables)
}

// misplaced returns a setting that has no effect on a provider of this type, and the reason;
// empty if all settings have an effect.
func misplaced(s Settings, b builtin) (setting, reason string) {
	typ := b.names[0]
	switch {
	case s.Region != "" && typ != "bedrock":
		return "region", "only providers of type bedrock use it"
	case s.Project != "" && typ != "vertex":
		return "project", "only providers of type vertex use it"
	case s.Location != "" && typ != "vertex":
		return "location", "only providers of type vertex use it"
	case s.KeyHeader == "":
		return "", ""
	case typ == "vertex":
		return "key_header", "providers of type vertex send their token in Authorization"
	case len(s.APIKeyEnv) == 0 && len(b.keyEnv) == 0:
		return "key_header", "the provider has no key; set api_key_env to the variable that holds it"
	default:
		return "", ""
	}
}

// howToSetKey returns advice on how to set the credential of a provider that works without
// one. It is empty for other providers, whose requests fail before they are sent.
func howToSetKey(s Settings, b builtin) string {
	switch {
	case !b.keyless || len(s.APIKeyEnv) > 0:
		return ""
	case len(b.keyEnv) > 0:
		return "set " + strings.Join(b.keyEnv, " or ")
	default:
		return "set api_key_env of the provider to the variable that holds it"
	}
}

func (c *Config) key(variables []string) Key {
	return func(context.Context) (string, error) {
		if key := c.env(variables...); key != "" {
			return key, nil
		}
		return "", missing(variables...)
	}
}

// keyAuth is a key in a header, or as bearer where none is named.
func (c *Config) keyAuth(header string, variables []string) headerAuth {
	if header == "" || strings.EqualFold(header, "Authorization") {
		return headerAuth{header: "Authorization", prefix: "Bearer ", key: c.key(variables)}
	}
	return headerAuth{header: header, key: c.key(variables)}
}

// optionalAuth is a credential that may not be there.
type optionalAuth struct {
	headerAuth
	there func() bool
}

// Authorize implements [Auth].
func (a optionalAuth) Authorize(ctx context.Context, req *http.Request, body []byte) error {
	if !a.there() {
		return nil
	}
	return a.headerAuth.Authorize(ctx, req, body)
}

// anthropicAuth is a key of Anthropic's, or a token of an account's.
type anthropicAuth struct{ config *Config }

const (
	envAnthropicKey   = "ANTHROPIC_API_KEY"
	envAnthropicToken = "ANTHROPIC_AUTH_TOKEN"
)

func (a anthropicAuth) chosen() headerAuth {
	if a.config.env(envAnthropicKey) == "" && a.config.env(envAnthropicToken) != "" {
		return a.config.keyAuth("", []string{envAnthropicToken})
	}
	return a.config.keyAuth("X-Api-Key", []string{envAnthropicKey})
}

// Authorize implements [Auth].
func (a anthropicAuth) Authorize(ctx context.Context, req *http.Request, body []byte) error {
	return a.chosen().Authorize(ctx, req, body)
}

func (a anthropicAuth) account(ctx context.Context) string { return a.chosen().account(ctx) }

// refusing is the credential of a provider that lacks a setting: like a
// credential that is missing, it is an error of the request.
type refusing struct{ err error }

// Authorize implements [Auth].
func (a refusing) Authorize(context.Context, *http.Request, []byte) error { return a.err }

// ollamaURL reads OLLAMA_HOST, which may lack the scheme, the port or the host.
func ollamaURL(s string) string {
	if s == "" || strings.Contains(s, "://") {
		return s
	}
	host, path, _ := strings.Cut(s, "/")
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), "11434"
	}
	if name == "" || name == "0.0.0.0" || name == "::" { // where it listens, not where it is
		name = "127.0.0.1"
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(name, port), Path: path}
	return u.String()
}

// placeVertex sends to a project and a location of Google Cloud.
func (c *Config) placeVertex(client *Client, s Settings) {
	if client.Path == "" {
		client.Path, client.StreamPath = "/models/{model}:generateContent", "/models/{model}:streamGenerateContent?alt=sse"
	}
	if s.BaseURL != "" {
		return
	}
	project, location := s.Project, s.Location
	if project == "" {
		project = c.env("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
	}
	if location == "" {
		location = c.env("GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION")
	}
	host := client.BaseURL
	switch {
	case host != "":
	case location == "" || location == "global":
		location, host = "global", "https://aiplatform.googleapis.com"
	default:
		host = "https://" + url.PathEscape(location) + "-aiplatform.googleapis.com"
	}
	if project == "" {
		client.Auth = refusing{&SettingError{Setting: "project", Reason: "it is missing; set GOOGLE_CLOUD_PROJECT"}}
	}
	client.BaseURL = strings.TrimRight(host, "/") + "/v1/projects/" + url.PathEscape(project) + "/locations/" + url.PathEscape(location) + "/publishers/google"
}

// placeBedrock sends to a region of AWS.
func (c *Config) placeBedrock(client *Client, s Settings) {
	sign := c.AWSKeys
	sign.getenv = func(name string) string { return c.env(name) }
	if s.Region != "" {
		sign.Region = s.Region
	}
	if sign.Region == "" {
		sign.Region = c.env(envAWSRegion...)
	}
	if sign.Now == nil && c.Clock != nil {
		sign.Now = c.Clock.Now
	}
	if len(s.APIKeyEnv) == 0 {
		client.Auth = Bedrock(sign)
	}
	if client.BaseURL != "" {
		return
	}
	if sign.Region == "" {
		client.Auth = refusing{&SettingError{Setting: "region", Reason: "it is missing; set " + strings.Join(envAWSRegion, " or ")}}
	}
	domain := ".amazonaws.com"
	if strings.HasPrefix(sign.Region, "cn-") {
		domain = ".amazonaws.com.cn"
	}
	client.BaseURL = "https://bedrock-runtime." + url.PathEscape(sign.Region) + domain
}
