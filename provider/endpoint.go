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

// SettingError says which setting of a [Client] or [Config] is missing or wrong.
type SettingError struct {
	// Setting is its name, such as "base_url".
	Setting string
	Reason  string
}

func (e *SettingError) Error() string { return "provider: " + e.Setting + ": " + e.Reason }

// address is where the requests for a model go: a request without a body and headers.
type address struct {
	model  string
	stream bool
	bare   *http.Request
}

// addressed is a request for a model, without a body and headers. What the settings
// of a Client, which do not change, make of the URL is worked out once for a model.
func (c *Client) addressed(ctx context.Context, model string, stream bool) (*http.Request, error) {
	to := c.to.Load()
	if to == nil || to.model != model || to.stream != stream {
		u, err := c.url(model, stream)
		if err != nil {
			return nil, err
		}
		bare, err := http.NewRequest(http.MethodPost, u.String(), nil) //nolint:noctx // every use has its own
		if err != nil {
			return nil, &SettingError{Setting: "base_url", Reason: "no request can be sent there"}
		}
		to = &address{model, stream, bare}
		c.to.Store(to)
	}
	req, u := to.bare.WithContext(ctx), *to.bare.URL
	req.URL, req.Header = &u, make(http.Header, 8)
	return req, nil
}

// url is where a request for a model goes.
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
	u, err := url.Parse("http://host" + join(base.EscapedPath(), path)) // two slashes would begin a host
	if err != nil {
		return nil, &SettingError{Setting: "path", Reason: "it cannot be part of a URL"}
	}
	base.Path, base.RawPath = u.Path, u.RawPath
	if base.RawQuery != "" && query != "" {
		query += "&"
	}
	base.RawQuery = query + base.RawQuery
	return base, nil
}

// parseBase reads a base URL. The error does not quote it: it may hold a secret.
func parseBase(s string) (*url.URL, error) {
	if s == "" {
		return nil, &SettingError{Setting: "base_url", Reason: "it is missing, and the API has none of its own"}
	}
	u, err := url.Parse(s)
	switch {
	case !strings.Contains(s, "://"): // 127.0.0.1:8000, which the parser does not even take for a URL
		return nil, &SettingError{Setting: "base_url", Reason: "it must begin with http:// or https://"}
	case err != nil:
		// Nor is what the parser says: it takes a part of a password for a port.
		return nil, &SettingError{Setting: "base_url", Reason: "it is no URL; what a URL cannot hold is written as %XX in it"}
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, &SettingError{Setting: "base_url", Reason: "want a URL that begins with https:// or http:// and a host"}
	case u.Fragment != "":
		return nil, &SettingError{Setting: "base_url", Reason: "a URL with a # has no place to go on"}
	}
	return u, nil
}

// join puts a path behind that of a base URL. A first element that the base
// ends with is not said twice: people write a base with and without its version.
func join(base, path string) string {
	base = strings.TrimRight(base, "/")
	path = strings.TrimLeft(path, "/")
	last := base[strings.LastIndexByte(base, '/')+1:]
	if first, rest, more := strings.Cut(path, "/"); more && first == last && first != "" {
		path = rest
	}
	return base + "/" + path
}

// withModel puts the name of a model into a path.
func withModel(path string, e *wire.Endpoint, model string) (string, error) {
	if e.ModelPath != nil {
		model, path = e.ModelPath(model, path)
	}
	switch {
	case model == "":
		return "", fmt.Errorf("provider: a model is needed, in the Client or the request: %w", dragoman.ErrInvalid)
	case hasDotSegment(model): // proxies unescape slashes, and then the path leads to another model
		return "", fmt.Errorf("provider: %q cannot be the name of a model: %w", model, dragoman.ErrInvalid)
	}
	// AWS's own clients escape the colons of an ARN too.
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
