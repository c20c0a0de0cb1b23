// Command server is the fixture of the official conformance suite for servers. It uses only what
// any program can use, with the steps of package tool on every call.
//
// It prints its URL.
//
//	go run ./mcp/internal/conformance/server -addr 127.0.0.1:3000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/dragoman-go/dragoman/mcp/mcpserver"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:3000", "address to listen on; empty serves standard input and output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *addr); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr string) error {
	f := &fixture{}
	s, err := mcpserver.New(mcpserver.Options{
		Name: "dragoman-conformance", Version: "1.0.0", Instructions: "Tools of the conformance suite.",
		Tools:         f.tools(),
		Resources:     resources(),
		Templates:     templates(),
		Prompts:       prompts(),
		Complete:      func(context.Context, mcpserver.Completion) ([]string, error) { return nil, nil },
		Subscriptions: true,
		Skills:        newSkills(),
		Logging:       true,
		Log:           slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	f.server = s
	if addr == "" {
		return s.ServeStdio(ctx)
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(3 * time.Second):
				_ = s.ResourceUpdated(ctx, watched)
			}
		}
	}()
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
