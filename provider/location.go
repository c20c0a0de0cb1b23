package provider

import (
	"context"
	"errors"
	"net/http"
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

// configure sets the URL and the credential of a client.
func (c *Config) configure(client *Client, s Settings, b builtin) error {
	if setting, reason := uselessSetting(s, b); setting != "" {
		return &SettingError{Setting: setting + " of the provider " + client.Name, Reason: reason}
	}
	client.BaseURL = s.BaseURL
	if client.BaseURL == "" {
		client.BaseURL = c.env(b.baseVariables()...)
	}
	client.Auth, client.keyAdvice = c.auth(s, b), howToSetKey(s, b)
	for _, h := range b.Headers {
		setHeader(client, h.Name, c.env(h.Env))
	}
	if b.CompleteBase != nil {
		client.BaseURL = b.CompleteBase(client.BaseURL)
	}
	if b.Place != nil {
		c.setLocation(client, s, b)
	}
	if client.BaseURL == "" {
		client.BaseURL = b.base
	}
	if client.BaseURL == noDefaultBase {
		return &SettingError{Setting: "base_url of the provider " + client.Name, Reason: "missing, and this provider type has no default"}
	}
	if client.BaseURL == "" {
		return nil
	}
	_, err := parseBase(client.BaseURL)
	if bad := new(SettingError); errors.As(err, &bad) {
		bad.Setting += " of the provider " + client.Name
	}
	return err
}

// auth returns the credential of a provider. It is read when a request is sent.
func (c *Config) auth(s Settings, b builtin) Auth {
	variables, header := b.KeyEnv, b.KeyHeader
	if len(s.APIKeyEnv) > 0 {
		variables = s.APIKeyEnv
	}
	if s.KeyHeader != "" {
		header = s.KeyHeader
	}
	switch {
	case b.AccessToken && s.Key != nil:
		return Token(s.Key)
	case s.Key != nil:
		return keyAuth(header, s.Key)
	case b.AccessToken && len(s.APIKeyEnv) == 0 && c.Token != nil:
		return Token(c.Token)
	case b.AccessToken:
		return Token(c.keyFromEnv(variables))
	case b.Signature != "" && len(s.APIKeyEnv) == 0:
		return tokenOrSignature{c.signer(s, b)}
	case len(variables) == 0:
		return nil
	case b.Keyless && len(s.APIKeyEnv) == 0:
		return optionalAuth{keyAuth(header, c.keyFromEnv(variables)), func() bool { return c.env(variables...) != "" }}
	case b.TokenEnv != "" && len(s.APIKeyEnv) == 0 && s.KeyHeader == "":
		return keyOrToken{c, b}
	}
	return keyAuth(header, c.keyFromEnv(variables))
}

// uselessSetting returns a setting that has no effect on a provider of this type, and the reason;
// empty if all settings have an effect.
func uselessSetting(s Settings, b builtin) (setting, reason string) {
	for _, name := range locationSettings {
		if s.location(name) != "" && !b.usesLocation(name) {
			return name, "only providers of type " + strings.Join(typesWith(name), " or ") + " use it"
		}
	}
	switch {
	case s.KeyHeader == "":
		return "", ""
	case b.AccessToken:
		return "key_header", "providers of type " + b.name() + " send their token in Authorization"
	case s.Key == nil && len(s.APIKeyEnv) == 0 && len(b.KeyEnv) == 0:
		return "key_header", "the provider has no API key: set api_key_env to the variable that contains it"
	default:
		return "", ""
	}
}

// locationSettings are the settings that locate a provider.
var locationSettings = []string{"region", "project", "location"}

// location returns a setting of locationSettings.
func (s Settings) location(name string) string {
	switch name {
	case "region":
		return s.Region
	case "project":
		return s.Project
	default:
		return s.Location
	}
}

// usesLocation reports whether the provider has a setting of locationSettings.
func (b builtin) usesLocation(setting string) bool { return len(b.locationVariables(setting)) > 0 }

// locationVariables returns the environment variables for a setting of locationSettings.
func (b builtin) locationVariables(setting string) []string {
	if b.Place == nil {
		return nil
	}
	for _, s := range b.Place.Settings {
		if s.Name == setting {
			return s.Env
		}
	}
	return nil
}

// typesWith returns the types of providers that have a setting of locationSettings.
func typesWith(setting string) (types []string) {
	for _, b := range builtins() {
		if b.usesLocation(setting) {
			types = append(types, b.name())
		}
	}
	return types
}

// howToSetKey returns advice on how to set the credential of a provider that works without
// one. It is empty for other providers, whose requests fail before they are sent.
func howToSetKey(s Settings, b builtin) string {
	switch {
	case !b.Keyless || s.Key != nil || len(s.APIKeyEnv) > 0:
		return ""
	case len(b.KeyEnv) > 0:
		return "set " + strings.Join(b.KeyEnv, " or ")
	default:
		return "set api_key_env of the provider to the variable that contains it"
	}
}

func (c *Config) keyFromEnv(variables []string) Key {
	return func(context.Context) (string, error) {
		if key := c.env(variables...); key != "" {
			return key, nil
		}
		return "", missingKeyError(variables...)
	}
}

// keyAuth sends a key in the header, or as a bearer token if header is empty.
func keyAuth(header string, k Key) headerAuth {
	if header == "" || strings.EqualFold(header, "Authorization") {
		return headerAuth{header: "Authorization", prefix: "Bearer ", key: k}
	}
	return headerAuth{header: header, key: k}
}

// optionalAuth is a credential that may be missing.
type optionalAuth struct {
	headerAuth
	isSet func() bool
}

// Authorize implements [Auth].
func (a optionalAuth) Authorize(ctx context.Context, req *http.Request, body []byte) error {
	if !a.isSet() {
		return nil
	}
	return a.headerAuth.Authorize(ctx, req, body)
}

// keyOrToken sends the key of a provider, or its token if only that is set.
type keyOrToken struct {
	config *Config
	b      builtin
}

func (a keyOrToken) choose() headerAuth {
	if a.config.env(a.b.KeyEnv...) == "" && a.config.env(a.b.TokenEnv) != "" {
		return keyAuth("", a.config.keyFromEnv([]string{a.b.TokenEnv}))
	}
	return keyAuth(a.b.KeyHeader, a.config.keyFromEnv(a.b.KeyEnv))
}

// Authorize implements [Auth].
func (a keyOrToken) Authorize(ctx context.Context, req *http.Request, body []byte) error {
	return a.choose().Authorize(ctx, req, body)
}

func (a keyOrToken) account(ctx context.Context) string { return a.choose().account(ctx) }

// failingAuth is the credential of a provider that lacks a setting. Like a missing credential, it
// fails each request.
type failingAuth struct{ err error }

// Authorize implements [Auth].
func (a failingAuth) Authorize(context.Context, *http.Request, []byte) error { return a.err }

// setLocation sets the URL from the region, project and location in the settings or the environment.
func (c *Config) setLocation(client *Client, s Settings, b builtin) {
	if client.Path == "" {
		client.Path, client.StreamPath = b.Place.Path, b.Place.StreamPath
	}
	if s.BaseURL != "" {
		return
	}
	base, missing := b.Place.BaseURL(client.BaseURL, func(setting string) string { return c.locationValue(s, b, setting) })
	if missing != "" {
		client.Auth = failingAuth{missingLocationError(b, missing)}
	}
	client.BaseURL = base
}

// locationValue returns the value of a setting of locationSettings.
func (c *Config) locationValue(s Settings, b builtin, setting string) string {
	value := s.location(setting)
	if value == "" && b.Signature != "" && setting == "region" {
		value = c.AWSKeys.Region
	}
	if value == "" {
		value = c.env(b.locationVariables(setting)...)
	}
	return value
}

// missingLocationError is the error for a missing setting of locationSettings.
func missingLocationError(b builtin, setting string) error {
	return &SettingError{Setting: setting, Reason: "missing: set " + strings.Join(b.locationVariables(setting), " or ")}
}

// signer returns the signer for a provider.
func (c *Config) signer(s Settings, b builtin) SigV4 {
	sign := c.AWSKeys
	sign.getenv = func(name string) string { return c.env(name) }
	sign.Region = c.locationValue(s, b, "region")
	if sign.Now == nil && c.testClock != nil {
		sign.Now = c.testClock.Now
	}
	return sign
}
