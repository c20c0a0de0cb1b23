package mcp

import (
	"errors"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
	"github.com/dragoman-go/dragoman/mcp/internal/stdio"
)

// dialerOf returns the transport of a server.
func dialerOf(s Server) (rpc.Dialer, error) {
	switch {
	case s.Command != "" && s.URL != "":
		return nil, errors.New("it has a command and a URL: set one of them")
	case s.Command != "":
		return &stdio.Dialer{Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir}, nil
	default:
		return nil, errors.New("it has neither a command nor a URL")
	}
}
