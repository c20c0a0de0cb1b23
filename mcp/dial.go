package mcp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/dragoman-go/dragoman/mcp/internal/httpclient"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
	"github.com/dragoman-go/dragoman/mcp/internal/stdio"
)

// Authorizer gets access tokens for a server that speaks HTTP. That of package mcp/oauth
// implements it. If an Authorizer has a method Authorize(*http.Request) error, that adds the
// token to each request in place of Token, such as with a proof for the request.
type Authorizer interface {
	// Token returns the access token to send, or "" for none.
	Token(ctx context.Context) (string, error)
	// Challenge handles a response with status 401 or 403. With retry, the request is sent
	// once more.
	Challenge(ctx context.Context, resp *http.Response) (retry bool, err error)
}

// dialerOf returns the transport of a server.
func (o *Options) dialerOf(s Server) (rpc.Dialer, error) {
	log := cmp.Or(o.Log, slog.Default()).With("server", s.Label())
	switch {
	case s.Command != "" && s.URL != "":
		return nil, errors.New("it has a command and a URL: set one of them")
	case s.Command != "":
		return &stdio.Dialer{Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir, Log: log}, nil
	case s.URL == "":
		return nil, errors.New("it has neither a command nor a URL")
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("its URL is not one of http or https")
	}
	d := &httpclient.Dialer{URL: s.URL, Headers: s.Headers, Transport: o.Transport, Log: log}
	if o.Authorize != nil {
		a, err := o.Authorize(s)
		if err != nil {
			return nil, err
		}
		if a != nil {
			d.Authorizer = a
		}
	}
	return d, nil
}
