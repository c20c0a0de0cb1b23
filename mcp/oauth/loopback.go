package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strconv"
	"time"
)

// Receiver receives the response to one login at a redirect URI.
type Receiver interface {
	// RedirectURI is the address that the authorization server sends the browser to.
	RedirectURI() string
	// Ephemeral reports whether the next receiver will have another redirect URI. A client
	// that is registered for an ephemeral one is not stored for later logins.
	Ephemeral() bool
	// Receive waits for the response with a state and returns its parameters. Other
	// requests, also with another state, are ignored: any page in the browser can send them.
	Receive(ctx context.Context, state string) (url.Values, error)
	// Close ends the receiver.
	Close() error
}

// Loopback receives responses with an HTTP server on 127.0.0.1.
type Loopback struct {
	// Ports are tried in order, so that the redirect URI is the same for each login. If all
	// are in use, the system chooses one. Empty means 33818, 33819 and 33820.
	Ports []int
	// Path of the redirect URI; empty means /callback.
	Path string
}

type loopbackReceiver struct {
	uri, path, host string
	ephemeral       bool
	listener        net.Listener
	server          *http.Server
	requests        chan callback
}

type callback struct {
	values url.Values
	match  chan bool
}

// Listen starts the server.
func (l Loopback) Listen(ctx context.Context) (Receiver, error) {
	ports := l.Ports
	if len(ports) == 0 {
		ports = []int{33818, 33819, 33820}
	}
	path := l.Path
	if path == "" {
		path = "/callback"
	}
	var lc net.ListenConfig
	var listener net.Listener
	var err error
	ephemeral := false
	for _, p := range append(append([]int(nil), ports...), 0) {
		if listener, err = lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(p))); err == nil {
			ephemeral = p == 0
			break
		}
	}
	if err != nil {
		return nil, err
	}
	r := &loopbackReceiver{
		path: path, host: listener.Addr().String(), ephemeral: ephemeral, listener: listener,
		uri: "http://" + listener.Addr().String() + path, requests: make(chan callback),
	}
	r.server = &http.Server{
		Handler: r, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		MaxHeaderBytes: 32 << 10,
	}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

func (r *loopbackReceiver) RedirectURI() string { return r.uri }

func (r *loopbackReceiver) Ephemeral() bool { return r.ephemeral }

func (r *loopbackReceiver) Close() error {
	_ = r.listener.Close() // Shutdown does not know it if Serve has not started yet
	// The browser still reads the page, so the server ends in an orderly way.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := r.server.Shutdown(ctx); err != nil {
		return r.server.Close()
	}
	return nil
}

func (r *loopbackReceiver) Receive(ctx context.Context, state string) (url.Values, error) {
	for {
		select {
		case c := <-r.requests:
			ok := subtle.ConstantTimeCompare([]byte(c.values.Get("state")), []byte(state)) == 1
			c.match <- ok
			if ok {
				return c.values, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ServeHTTP shows a page without anything from the request.
func (r *loopbackReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Connection", "close")
	page := func(status int, text string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<!doctype html><title>Login</title><p>%s</p>\n", text)
	}
	if req.URL.Path != r.path || req.Method != http.MethodGet || req.Host != r.host {
		page(http.StatusNotFound, "Nothing here.")
		return
	}
	values, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		page(http.StatusBadRequest, "This is not a response to the login.")
		return
	}
	c := callback{values: values, match: make(chan bool, 1)}
	select {
	case r.requests <- c:
	case <-req.Context().Done():
		return
	case <-time.After(time.Second): // the login is over
		page(http.StatusGone, "The login is over. Return to the program.")
		return
	}
	if !<-c.match {
		page(http.StatusBadRequest, "This is not a response to the login.")
		return
	}
	page(http.StatusOK, "The program has received the response. You can close this window.")
}

// OpenBrowser opens an http or https address in the browser of the user. It starts the
// opener of the operating system directly, without a shell.
func OpenBrowser(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
		return errors.New("oauth: only http and https addresses are opened in a browser")
	}
	name, args := "xdg-open", []string{u.String()}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", u.String()}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...) //nolint:gosec // the argument is a checked URL
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("oauth: open the browser: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return nil
}
