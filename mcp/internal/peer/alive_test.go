package peer

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

func TestIdleServersThatAnswerPingsAreKeptAlive(t *testing.T) {
	const hang, refuse, answer = "hang", "refuse", "answer"
	for name, tc := range map[string]struct {
		answers []string // to the pings; the last one repeats
		lost    bool
		pings   int // at most; 0 means any number
	}{
		"answers":           {[]string{answer}, false, 0},
		"never answers":     {[]string{hang}, false, 1},
		"refuses":           {[]string{refuse}, false, 1},
		"becomes silent":    {[]string{answer, hang}, true, 3},
		"is silent once":    {[]string{answer, hang, answer}, false, 0},
		"refuses from then": {[]string{answer, refuse}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pinged := make(chan struct{}, 100)
			lost := make(chan error, 1)
			var n atomic.Int32
			s := &server{}
			s.handle = older(func(ctx context.Context, _ *conn, r *rpc.Request) (string, error) {
				if r.Method != "ping" {
					return done, nil
				}
				do := tc.answers[min(int(n.Add(1)), len(tc.answers))-1]
				pinged <- struct{}{}
				switch do {
				case hang:
					<-ctx.Done()
					return "", context.Cause(ctx)
				case refuse:
					return "", &rpc.Error{Code: rpc.CodeMethodNotFound, Message: "no ping"}
				}
				return "{}", nil
			})
			p := connect(t, s, func(c *Config) {
				c.KeepAlive = 10 * time.Millisecond
				c.Lost = func(err error) { lost <- err }
			})
			if err := p.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			if tc.lost {
				if err := <-lost; !errors.Is(err, rpc.ErrLost) || !strings.Contains(err.Error(), "ping") {
					t.Errorf("lost: %v", err)
				}
				return
			}
			want := 5
			if tc.pings > 0 {
				want = tc.pings
			}
			for range want {
				<-pinged
			}
			if _, err := callTool(t, p, Options{}); err != nil {
				t.Error(err)
			}
			time.Sleep(50 * time.Millisecond) // further pings would come now
			if tc.pings > 0 && s.count("ping") > tc.pings {
				t.Errorf("%d pings", s.count("ping"))
			}
			select {
			case err := <-lost:
				t.Errorf("the connection was lost: %v", err)
			default:
			}
		})
	}
}

func TestModernServersGetNoPings(t *testing.T) {
	s := &server{handle: modern(func(context.Context, *conn, *rpc.Request) (string, error) { return done, nil })}
	p := connect(t, s, func(c *Config) { c.KeepAlive = time.Millisecond })
	if _, err := callTool(t, p, Options{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(30 * time.Millisecond)
	if s.count("ping") != 0 {
		t.Error("a ping was sent")
	}
}

func TestAnnouncedChangesOfTasksAreReadAtOnce(t *testing.T) {
	const slow = `"taskId":"tk1","createdAt":"x","lastUpdatedAt":"x","ttlMs":600000,"pollIntervalMs":60000`
	for name, modernServer := range map[string]bool{"modern": true, "older": false} {
		t.Run(name, func(t *testing.T) {
			subscribed := make(chan string, 4)
			polls := 0
			var c0 atomic.Pointer[conn]
			states := func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
				switch r.Method {
				case "tools/call":
					c0.Store(c)
					if modernServer {
						return `{"resultType":"task","status":"working",` + slow + `}`, nil
					}
					return `{"task":{"taskId":"tk1","status":"working","createdAt":"x","ttl":60000,"pollInterval":60000}}`, nil
				case "tasks/get":
					if polls++; polls == 1 {
						return `{"resultType":"complete","status":"working",` + slow + `,"pollInterval":60000}`, nil
					}
					return `{"resultType":"complete","status":"completed",` + slow + `,"result":{"content":[]}}`, nil
				case "tasks/result":
					return `{"content":[]}`, nil
				}
				return "", &rpc.Error{Code: rpc.CodeMethodNotFound}
			}
			s := &server{}
			s.handle = older(states)
			notification := "notifications/tasks/status"
			if modernServer {
				notification = "notifications/tasks"
				s.handle = func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
					if r.Method == "subscriptions/listen" {
						subscribed <- string(fields(fields(r.Params)["notifications"])["taskIds"])
					}
					return modern(states)(ctx, c, r)
				}
			}
			p := connect(t, s)
			ended := make(chan error, 1)
			go func() {
				_, err := callTool(t, p, Options{TaskRequired: !modernServer})
				ended <- err
			}()
			if modernServer {
				for ids := ""; ids == ""; {
					ids = <-subscribed
				}
			}
			flood := time.NewTicker(5 * time.Millisecond)
			defer flood.Stop()
			for {
				select {
				case err := <-ended:
					if err != nil {
						t.Error(err)
					}
					if polls > 5 {
						t.Errorf("%d requests", polls)
					}
					return
				case <-flood.C:
					if c := c0.Load(); c != nil {
						c.notify(notification, `{"taskId":"tk1","status":"working"}`, nil)
						c.notify(notification, `{"taskId":"another"}`, nil)
					}
				}
			}
		})
	}
}
