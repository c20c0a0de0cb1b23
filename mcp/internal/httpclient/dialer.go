// Package httpclient connects to MCP servers over HTTP: streamable HTTP of all revisions, and
// HTTP+SSE of 2024-11-05.
package httpclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

const (
	defaultMaxMessage     = 16 << 20
	defaultConnectTimeout = 10 * time.Second
	defaultAnswerTimeout  = 30 * time.Second
	// closeTimeout limits Close, and endTimeout the requests that end a session or a call
	// after it.
	closeTimeout = 3 * time.Second
	endTimeout   = 5 * time.Second
	maxRedirects = 3
)

// Dialer connects to one endpoint.
type Dialer struct {
	// URL is the endpoint. Headers are sent with every request; they are never logged.
	URL     string
	Headers map[string]string
	// Authorizer gets access tokens; nil means no authorization beyond Headers.
	Authorizer Authorizer
	// Transport sends the requests; nil means one of its own for each connection, which uses
	// the proxies of the environment.
	Transport http.RoundTripper
	// MaxMessage limits a message, or a response body, in bytes; 0 means 16 MiB.
	MaxMessage int
	// ConnectTimeout limits connecting to the host; 0 means 10 seconds. AnswerTimeout limits
	// waiting for the headers of responses that are due at once: those to notifications, and
	// those that open a stream; 0 means 30 seconds. Other responses take as long as the
	// context of the call allows.
	ConnectTimeout, AnswerTimeout time.Duration
	// Log gets warnings about the server; nil logs nothing.
	Log *slog.Logger

	auth flights
}

// Dial implements [rpc.Dialer]. It sends nothing. The connection is a *[Conn].
func (d *Dialer) Dial(ctx context.Context, h rpc.Handler) (rpc.Conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	endpoint, err := url.Parse(d.URL)
	if err != nil {
		return nil, errors.New("the URL of the server is not valid") // the text of err has the URL, which may have secrets
	}
	if endpoint.Scheme != "https" && endpoint.Scheme != "http" || endpoint.Host == "" {
		return nil, fmt.Errorf("the URL of a server begins with https:// or http:// and has a host, not %q", endpoint.Scheme+"://"+endpoint.Host)
	}
	endpoint.Fragment, endpoint.RawFragment = "", ""
	headers := http.Header{"User-Agent": {"dragoman"}}
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		if err := checkHeader(name, d.Headers[name]); err != nil {
			return nil, err
		}
		headers.Set(name, d.Headers[name])
	}
	c := &Conn{
		dialer: d, handler: h, headers: headers, origin: originOf(endpoint), max: d.MaxMessage,
		answerTimeout: d.AnswerTimeout, log: d.Log, done: make(chan struct{}),
	}
	c.endpoint.Store(endpoint)
	if c.max <= 0 {
		c.max = defaultMaxMessage
	}
	if c.answerTimeout <= 0 {
		c.answerTimeout = defaultAnswerTimeout
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	transport := d.Transport
	if transport == nil {
		own := d.transport()
		transport, c.release = own, own.CloseIdleConnections
	}
	c.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.life, c.stop = context.WithCancelCause(context.Background())
	return c, nil
}

// transport returns a transport for one connection.
func (d *Dialer) transport() *http.Transport {
	limit := d.ConnectTimeout
	if limit <= 0 {
		limit = defaultConnectTimeout
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: limit}).DialContext,
		TLSHandshakeTimeout:   limit,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       30 * time.Second, // less than servers keep them
		ExpectContinueTimeout: time.Second,
		// A message can be in the headers of a request, not in those of a response.
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// ownHeaders are set by this package.
var ownHeaders = []string{
	"Accept", "Content-Type", "Content-Length", "Host", "Connection", "Transfer-Encoding",
	"Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Last-Event-Id",
}

func checkHeader(name, value string) error {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !isToken(name):
		return fmt.Errorf("header %q: a name has letters, digits and hyphens", name)
	case slices.Contains(ownHeaders, canonical) || strings.HasPrefix(canonical, "Mcp-Param-"):
		return fmt.Errorf("header %s: the protocol sets it, remove it", canonical)
	case !isHeaderValue(value):
		return fmt.Errorf("header %s: the value has a line end or another control character", canonical)
	}
	return nil
}

// isToken reports whether a text is a token of RFC 9110.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

func isHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// originOf returns the origin of a URL in a form that compares.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Scheme + "://" + u.Hostname() + ":" + port)
}
