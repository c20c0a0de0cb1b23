package peer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

func TestPitfallK2_AnyOtherAnswerToTheProbeMeansLegacy(t *testing.T) {
	for name, failure := range map[string]error{
		"method not found": &rpc.Error{Code: rpc.CodeMethodNotFound, Message: "no"},
		"invalid params":   &rpc.Error{Code: rpc.CodeInvalidParams, Message: "no"},
		"private code":     &rpc.Error{Code: -32000, Message: "session id required"},
		"plain 400":        &rpc.HTTPError{Status: 400, Body: "Bad Request"},
		"404 page":         &rpc.HTTPError{Status: 404, Body: "<html>"},
		"500":              &rpc.HTTPError{Status: 500},
		"lost":             rpc.ErrLost,
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{}
			s.handle = older(nil)
			inner := s.handle
			s.handle = func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
				if r.Method == "server/discover" {
					return "", failure
				}
				if c.number == 1 {
					t.Errorf("%s went over the connection of the probe", r.Method)
				}
				return inner(ctx, c, r)
			}
			p := connect(t, s)
			if err := p.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			if info, _ := p.Info(); info.Revision != rpc.Revision20251125 || s.dials() != 2 {
				t.Errorf("revision %q after %d connections", info.Revision, s.dials())
			}
		})
	}
}

func TestPitfallK2_AuthorizationErrorsDoNotDecideTheEra(t *testing.T) {
	s := &server{handle: func(context.Context, *conn, *rpc.Request) (string, error) {
		return "", &rpc.HTTPError{Status: 401}
	}}
	p := connect(t, s)
	if err := p.Open(t.Context()); err == nil || s.count("initialize") != 0 {
		t.Errorf("err = %v, initialize sent %d times", err, s.count("initialize"))
	}
}

func TestPitfallK1_SilentServerGetsAFreshConnectionAndAHandshake(t *testing.T) {
	s := &server{}
	inner := older(nil)
	s.handle = func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
		if r.Method == "server/discover" {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		return inner(ctx, c, r)
	}
	p := connect(t, s, func(c *Config) { c.ProbeTimeout = 10 * time.Millisecond })
	if err := p.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.conns[1].kill(errors.New("died"))
	if _, err := p.List(t.Context(), Tools); err != nil {
		t.Fatal(err)
	}
	if n := s.count("server/discover"); n != 1 || s.dials() != 3 {
		t.Errorf("%d probes over %d connections: the era was not remembered", n, s.dials())
	}
}

func TestPitfallK3_ModernProbeWithoutToolsFallsBack(t *testing.T) {
	s := &server{}
	old := older(nil)
	s.handle = func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
		switch {
		case r.Method == "server/discover":
			return discovered, nil
		case c.number == 1:
			<-ctx.Done()
			return "", context.Cause(ctx)
		default:
			return old(ctx, c, r)
		}
	}
	p := connect(t, s, func(c *Config) { c.ProbeTimeout = 10 * time.Millisecond })
	list, err := p.List(t.Context(), Tools)
	if err != nil || len(list.Items) != 1 {
		t.Fatal(list, err)
	}
	if info, _ := p.Info(); info.Revision != rpc.Revision20251125 || !info.Stalled {
		t.Errorf("%+v: the fallback is not recorded", info)
	}
}

func TestModernServerIsFoundByOneProbe(t *testing.T) {
	s := &server{handle: modern(nil)}
	p := connect(t, s)
	list, err := p.List(t.Context(), Tools)
	if err != nil || len(list.Items) != 1 || s.dials() != 1 || s.count("initialize") != 0 {
		t.Fatal(list, err, s.seen)
	}
	if n := s.count("tools/list"); n != 1 {
		t.Errorf("tools/list was sent %d times: the page of the probe was read again", n)
	}
}

func TestUnsupportedRevisionNamesBothSides(t *testing.T) {
	s := &server{handle: func(context.Context, *conn, *rpc.Request) (string, error) {
		return "", &rpc.Error{Code: rpc.CodeUnsupportedRevision, Message: "unsupported", Data: []byte(`{"supported":["2099-01-01"],"requested":"2026-07-28"}`)}
	}}
	err := connect(t, s).Open(t.Context())
	if err == nil || !strings.Contains(err.Error(), "2099-01-01") || !strings.Contains(err.Error(), "2026-07-28") {
		t.Error(err)
	}
}

func TestUnsupportedRevisionWithLegacyVersionsLeadsToAHandshake(t *testing.T) {
	old := older(nil)
	s := &server{handle: func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
		if r.Method == "server/discover" {
			return "", &rpc.Error{Code: rpc.CodeUnsupportedRevision, Message: "unsupported", Data: []byte(`{"supported":["2025-11-25"]}`)}
		}
		return old(ctx, c, r)
	}}
	p := connect(t, s)
	if err := p.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestFixedRevisionDoesNotProbe(t *testing.T) {
	s := &server{handle: older(nil)}
	p := connect(t, s, func(c *Config) { c.Revision = rpc.Revision20251125 })
	if err := p.Open(t.Context()); err != nil || s.count("server/discover") != 0 {
		t.Error(err, s.seen)
	}
	s = &server{handle: older(nil)}
	if err := connect(t, s, func(c *Config) { c.Revision = rpc.Revision20260728 }).Open(t.Context()); err == nil || s.count("initialize") != 0 {
		t.Error("a fixed modern revision fell back:", err)
	}
}

func TestPitfallK18_OpenEndsWithItsContext(t *testing.T) {
	s := &server{handle: func(ctx context.Context, _ *conn, _ *rpc.Request) (string, error) {
		select {} // deaf to its context, too
	}}
	p := connect(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.Open(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
