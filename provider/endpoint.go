package provider

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
)

func (c *Client) base() string {
	if c.BaseURL != "" {
		return c.BaseURL
	}
	return wire.Of(c.codec()).Endpoint.BaseURL
}

// SettingError reports a missing or invalid setting of a [Client] or [Config].
type SettingError struct {
	// Setting is the name of the setting, such as "base_url".
	Setting string
	Reason  string
}

func (e *SettingError) Error() string { return "provider: " + e.Setting + ": " + e.Reason }

// address caches the address of requests for a model: a request without a body and headers.
type address struct {
	model   string
	stream  bool
	request *http.Request
}

// newRequest returns a request for a model, without a body and headers. The URL is computed once
// per model, because the settings of a Client do not change.
func (c *Client) newRequest(ctx context.Context, model string, stream bool) (*http.Request, error) {
	to := c.cachedAddress.Load()
	if to == nil || to.model != model || to.stream != stream {
		u, err := c.url(model, stream)
		if err != nil {
			return nil, err
		}
		bare, err := http.NewRequest(http.MethodPost, u.String(), nil) //nolint:noctx // every use sets its own context
		if err != nil {
			return nil, &SettingError{Setting: "base_url", Reason: "cannot build a request for this URL"}
		}
		to = &address{model, stream, bare}
		c.cachedAddress.Store(to)
	}
	req, u := to.request.WithContext(ctx), *to.request.URL
	req.URL, req.Header = &u, make(http.Header, 8)
	return req, nil
}

// url returns the URL of a request for a model.
func (c *Client) url(model string, stream bool) (*url.URL, error) {
	e := &wire.Of(c.codec()).Endpoint
	path := e.Path
	if stream && e.StreamPath != "" {
		path = e.StreamPath
	}
	if c.Path != "" {
		path = c.Path
	}
	if stream && c.StreamPath != "" {
		path = c.StreamPath
	}
	base, err := parseBase(c.base())
	if err != nil {
		return nil, err
	}
	if strings.Contains(path, "{model}") {
		if path, err = withModel(path, e, model); err != nil {
			return nil, err
		}
	}
	path, query, _ := strings.Cut(path, "?")
	u, err := url.Parse("http://host" + joinPath(base.EscapedPath(), path)) // a path that begins with two slashes would be parsed as a host
	if err != nil {
		return nil, &SettingError{Setting: "path", Reason: "not a valid URL path: escape special characters as %XX"}
	}
	base.Path, base.RawPath = u.Path, u.RawPath
	if base.RawQuery != "" && query != "" {
		query += "&"
	}
	base.RawQuery = query + base.RawQuery
	return base, nil
}

// parseBase parses a base URL. The error does not quote it, because it may hold a secret.
func parseBase(s string) (*url.URL, error) {
	if s == "" {
		return nil, &SettingError{Setting: "base_url", Reason: "missing, and this API has no default: set the URL of the server"}
	}
	u, err := url.Parse(s)
	switch {
	case !strings.Contains(s, "://"): // 127.0.0.1:8000, which url.Parse rejects
		return nil, &SettingError{Setting: "base_url", Reason: "must begin with http:// or https://"}
	case err != nil:
		// Do not quote the parser's error either: it reports a part of a password as a port.
		return nil, &SettingError{Setting: "base_url", Reason: "not a valid URL: escape special characters as %XX"}
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, &SettingError{Setting: "base_url", Reason: "want a URL that begins with https:// or http:// and a host"}
	case u.Fragment != "":
		return nil, &SettingError{Setting: "base_url", Reason: "must not contain a #, because the request path is appended to it"}
	}
	return u, nil
}

// joinPath appends a path to the path of a base URL. If the base already ends with the first
// element of the path, join does not repeat it: people write a base with and without its
// version.
func joinPath(base, path string) string {
	base = strings.TrimRight(base, "/")
	path = strings.TrimLeft(path, "/")
	last := base[strings.LastIndexByte(base, '/')+1:]
	if first, rest, more := strings.Cut(path, "/"); more && first == last && first != "" {
		path = rest
	}
	return base + "/" + path
}

// withModel inserts the name of a model into a path.
func withModel(path string, e *wire.Endpoint, model string) (string, error) {
	if e.ModelPath != nil {
		model, path = e.ModelPath(model, path)
	}
	switch {
	case model == "":
		return "", fmt.Errorf("provider: the request has no model: set Client.Model or Request.Model: %w", dragoman.ErrInvalid)
	case hasDotSegment(model): // proxies unescape slashes, and the path would then lead to another model
		return "", fmt.Errorf("provider: %q is not a valid model name: %w", model, dragoman.ErrInvalid)
	}
	// AWS clients also escape the colons of an ARN.
	escaped := strings.ReplaceAll(url.PathEscape(model), ":", "%3A")
	return strings.ReplaceAll(path, "{model}", escaped), nil
}

// hasDotSegment reports whether an element of a name is "." or "..".
func hasDotSegment(name string) bool {
	for element := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '/' || r == '\\' }) {
		if element == "." || element == ".." {
			return true
		}
	}
	return false
}
