package mcpgate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/mcp/mcpserver"
)

// upstream is the connection to one server, for one key or for all.
type upstream struct {
	gate    *Gate
	config  mcp.Server
	at      place
	servers *mcp.Servers
	// first is closed after the first attempt to connect.
	first chan struct{}
	once  sync.Once
}

// upstream returns the connection to a server, and starts it if there is none. It returns nil
// after Close. The caller holds g.mu.
func (g *Gate) upstream(s mcp.Server, key string) *upstream {
	if g.config.Shared || g.config.Keys == nil {
		key = ""
	}
	at := place{s.Name, key}
	if u := g.pool[at]; u != nil || g.closed || s.Disabled {
		return u
	}
	u := &upstream{gate: g, config: s, at: at, first: make(chan struct{})}
	servers, err := mcp.Connect(context.Background(), mcp.Options{
		Lock: g.lock, Wait: time.Nanosecond, NoElicitation: g.config.NoApprovals, Forward: true, Offers: offers,
		Authorize: g.config.Authorize, Transport: g.opts.Transport, Name: g.opts.Name, Version: g.opts.Version,
		Observe: u.observe, Log: g.opts.Log,
	}, s)
	if err != nil {
		g.opts.Log.Error("an MCP server cannot be used", "server", s.Name, "error", err)
		u.servers = noServers()
		u.once.Do(func() { close(u.first) })
	} else {
		u.servers = servers
	}
	g.pool[at] = u
	return u
}

// noServers stands in for a server whose settings are wrong.
func noServers() *mcp.Servers {
	s, err := mcp.Connect(context.Background(), mcp.Options{})
	if err != nil { // there is nothing that could fail
		panic(err)
	}
	return s
}

// offers returns what the client of a call can answer. Clients before 2026-07-28 that cannot open
// pages get the page as text.
func offers(ctx context.Context) mcp.Offers {
	c, ok := mcpserver.CallerFrom(ctx)
	if !ok {
		return mcp.Offers{}
	}
	return mcp.Offers{
		Form: c.Can(mcpserver.CapElicitation), URL: c.Can(mcpserver.CapElicitationURL) || c.Revision < revisionModern,
		Sampling: c.Can(mcpserver.CapSampling), Roots: c.Can(mcpserver.CapRoots),
	}
}

const revisionModern = "2026-07-28"

// observe handles an event of the server.
func (u *upstream) observe(e mcp.Event) {
	g := u.gate
	if e.Kind == "ready" || e.Kind == "failed" { // when the fronts have the tools
		defer u.once.Do(func() { close(u.first) })
	}
	switch e.Kind {
	case "ready":
		g.opts.Log.Info("an MCP server is ready", "server", u.config.Name, "key", u.at.key)
	case "failed", "lost":
		g.opts.Log.Warn("an MCP server is not available", "server", u.config.Name, "key", u.at.key, "error", e.Err)
	case "log":
		g.lost(u.config.Name, dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Info, Path: "/notifications/message", Detail: "log messages of servers go to the log of the gateway"})
		g.opts.Log.Debug("an MCP server logs", "server", u.config.Name, "level", e.Level, "message", e.Text)
		return
	}
	g.mu.Lock()
	var all []*front
	for _, f := range g.fronts {
		if u.at.key == "" || u.at.key == f.key {
			all = append(all, f)
		}
	}
	var followers []*endpoint
	for _, f := range all {
		if e.Kind == "resource" {
			followers = append(followers, f.followers(u.config.Name)...)
		} else {
			f.changed(u.config.Name, e)
		}
	}
	g.mu.Unlock()
	for _, one := range followers { // a client that does not read must not hold the lock
		_ = one.server.ResourceUpdated(context.Background(), one.publicURI(u.config.Name, e.URI))
	}
}

// wait waits until the first attempt to connect has ended.
func (u *upstream) wait(ctx context.Context) {
	select {
	case <-u.first:
	case <-ctx.Done():
	}
}

// unavailable returns the error about a server that has no connection; nil if it has one.
func (u *upstream) unavailable() error {
	for _, s := range u.servers.Status() {
		switch s.State {
		case mcp.StateReady, mcp.StateLost:
			return nil
		case mcp.StateConnecting:
			return &unavailableError{u.config.Name, errors.New("it is being connected")}
		}
		if s.Err != nil {
			return &unavailableError{u.config.Name, s.Err}
		}
	}
	return &unavailableError{u.config.Name, errors.New("its settings are wrong; the details are in the log of the gateway")}
}

// unavailableError reports a server that cannot be reached. The text for clients has no details of
// its connection, which may be secret.
type unavailableError struct {
	server string
	cause  error
}

func (e *unavailableError) Error() string { return e.ForClient() }
func (e *unavailableError) Unwrap() error { return e.cause }

// ForClient returns the text for clients.
func (e *unavailableError) ForClient() string {
	return fmt.Sprintf("the MCP server %q is not available at the moment; the details are in the log of the gateway", e.server)
}
