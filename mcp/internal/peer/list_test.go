package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// listing1 returns a server with handshake whose tools/list is answered by list.
func listing1(list func(cursor string, c *conn) (string, error)) *server {
	s := &server{}
	old := older(nil)
	s.handle = func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
		if r.Method == "tools/list" {
			return list(string(fields(r.Params)["cursor"]), c)
		}
		return old(ctx, c, r)
	}
	return s
}

func page(name, next string) string {
	if next != "" {
		next = `,"nextCursor":` + next
	}
	return `{"tools":[{"name":"` + name + `","inputSchema":{"type":"object"}}]` + next + `}`
}

func names(l Listing) string {
	var out []string
	for _, i := range l.Items {
		out = append(out, nameOf(i))
	}
	return strings.Join(out, " ")
}

func TestPitfallK12_Cursors(t *testing.T) {
	for _, tc := range []struct {
		name  string
		list  func(cursor string) string
		want  string
		trunc bool
	}{
		{"all pages", func(c string) string {
			return map[string]string{"": page("a", `"1"`), `"1"`: page("b", `"2"`), `"2"`: page("c", "")}[c]
		}, "a b c", false},
		{"null ends", func(string) string { return page("a", "null") }, "a", false},
		{"the empty string is a cursor", func(c string) string {
			return map[string]string{"": page("a", `""`), `""`: page("b", "")}[c]
		}, "a b", false},
		{"a repeated empty string is the end", func(c string) string {
			return map[string]string{"": page("a", `""`), `""`: page("b", `""`)}[c]
		}, "a b", false},
		{"a repeated cursor is not followed", func(string) string { return page("a", `"1"`) }, "a a", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := connect(t, listing1(func(c string, _ *conn) (string, error) { return tc.list(c), nil }))
			l, err := p.List(t.Context(), Tools)
			if err != nil || names(l) != tc.want || (l.Truncated != "") != tc.trunc {
				t.Errorf("%q, truncated %q, %v", names(l), l.Truncated, err)
			}
		})
	}
}

func TestQuirkH3_EndlessListIsCut(t *testing.T) {
	n := 0
	p := connect(t, listing1(func(string, *conn) (string, error) {
		n++
		return page("a", fmt.Sprintf(`"%d"`, n)), nil
	}))
	l, err := p.List(t.Context(), Tools)
	if err != nil || n != maxPages || l.Truncated == "" {
		t.Errorf("%d pages, %q, %v", n, l.Truncated, err)
	}
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i)
	}
	p = connect(t, listing1(func(string, *conn) (string, error) { return `{"tools":[` + strings.Join(many, ",") + `]}`, nil }))
	if l, err = p.List(t.Context(), Tools); err != nil || len(l.Items) != maxItems || l.Truncated == "" {
		t.Errorf("%d tools, %q, %v", len(l.Items), l.Truncated, err)
	}
	p = connect(t, listing1(func(string, *conn) (string, error) { return page("a", `"`+strings.Repeat("c", maxCursor)+`"`), nil }))
	if l, err = p.List(t.Context(), Tools); err != nil || l.Truncated == "" {
		t.Error(l.Truncated, err)
	}
}

func TestOneBadItemDoesNotHideTheOthers(t *testing.T) {
	p := connect(t, listing1(func(string, *conn) (string, error) {
		return `{"tools":[7,{"name":"big","description":"` + strings.Repeat("x", maxItem) + `"},{"name":"good","inputSchema":{"type":"object"}}]}`, nil
	}))
	l, err := p.List(t.Context(), Tools)
	if err != nil || names(l) != "good" || len(l.Dropped) != 2 || l.Dropped[1].Name != "big" {
		t.Error(names(l), l.Dropped, err)
	}
}

func TestQuirkH17_ListsAreCopies(t *testing.T) {
	p := connect(t, listing1(func(string, *conn) (string, error) { return page("a", ""), nil }))
	l, err := p.List(t.Context(), Tools)
	if err != nil {
		t.Fatal(err)
	}
	copy(l.Items[0], "XXXXXXXXXX")
	l.Items[0] = nil
	if again, _ := p.List(t.Context(), Tools); names(again) != "a" {
		t.Errorf("a caller changed the stored list: %s", again.Items[0])
	}
}

func TestQuirkH4_BurstsOfChangesLeadToOneRead(t *testing.T) {
	var reads atomic.Int32
	fail := atomic.Bool{}
	s := listing1(func(string, *conn) (string, error) {
		n := reads.Add(1)
		if fail.Load() {
			return "", &rpc.Error{Code: rpc.CodeInternal, Message: "broken"}
		}
		return page(fmt.Sprintf("t%d", n), ""), nil
	})
	changes := make(chan List, 100)
	p := connect(t, s, func(c *Config) { c.Debounce = 30 * time.Millisecond; c.ListChanged = func(l List) { changes <- l } })
	if _, err := p.List(t.Context(), Tools); err != nil {
		t.Fatal(err)
	}
	c := s.conns[len(s.conns)-1]
	for range 50 {
		c.notify("notifications/tools/list_changed", ``, nil)
	}
	if l := <-changes; l != Tools {
		t.Error(l)
	}
	if reads.Load() != 2 {
		t.Errorf("%d reads for one burst", reads.Load()-1)
	}
	fail.Store(true)
	c.notify("notifications/tools/list_changed", ``, nil)
	l, err := p.List(t.Context(), Tools) // stale: it is read again, and fails
	if err != nil || names(l) != "t2" || l.Failed == nil {
		t.Errorf("%q, %v, %v: the earlier list was not kept", names(l), l.Failed, err)
	}
}

func TestPitfallK34_ListsAreReadAgainAfterTheirTime(t *testing.T) {
	var reads atomic.Int32
	ttl := `60000`
	s := &server{}
	s.handle = func(_ context.Context, c *conn, r *rpc.Request) (string, error) {
		switch r.Method {
		case "server/discover":
			return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`, nil
		default:
			reads.Add(1)
			return `{"resultType":"complete","tools":[],"ttlMs":` + ttl + `,"cacheScope":"private"}`, nil
		}
	}
	p := connect(t, s)
	for range 3 {
		if _, err := p.List(t.Context(), Tools); err != nil {
			t.Fatal(err)
		}
	}
	if reads.Load() != 1 {
		t.Errorf("read %d times within its time", reads.Load())
	}
	for raw, want := range map[string]time.Duration{`-5`: 0, `0`: 0, `"x"`: 0, `1e300`: maxTTL, `1500`: 1500 * time.Millisecond, ``: 0} {
		if got := ttlOf(json.RawMessage(raw)); got != want {
			t.Errorf("ttlMs %s: %v", raw, got)
		}
	}
}

func TestQuirkH16_InvalidHeaderAnnotationDropsOnlyThatToolAndOnlyOverHTTP(t *testing.T) {
	tools := []string{
		`{"name":"good","inputSchema":{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"Path"},"o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}`,
		`{"name":"number","inputSchema":{"type":"object","properties":{"p":{"type":"number","x-mcp-header":"P"}}}}`,
		`{"name":"token","inputSchema":{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"a b"}}}}`,
		`{"name":"twice","inputSchema":{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"A"},"q":{"type":"string","x-mcp-header":"a"}}}}`,
		`{"name":"items","inputSchema":{"type":"object","properties":{"p":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}}`,
		`{"name":"defs","inputSchema":{"type":"object","$defs":{"d":{"type":"string","x-mcp-header":"A"}}}}`,
		`{"name":"data","inputSchema":{"type":"object","properties":{"p":{"type":"object","default":{"x-mcp-header":"a b"}}}}}`,
	}
	for _, http := range []bool{true, false} {
		var headers map[string]string
		s := &server{}
		s.handle = func(_ context.Context, c *conn, r *rpc.Request) (string, error) {
			switch r.Method {
			case "server/discover":
				return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`, nil
			case "tools/list":
				return `{"resultType":"complete","tools":[` + strings.Join(tools, ",") + `],"ttlMs":60000,"cacheScope":"private"}`, nil
			}
			headers = r.Headers
			return done, nil
		}
		p := connect(t, s, func(c *Config) { c.HTTP = http })
		l, err := p.List(t.Context(), Tools)
		if err != nil {
			t.Fatal(err)
		}
		want := "good data"
		if !http {
			want = "good number token twice items defs data"
		}
		if names(l) != want {
			t.Errorf("http %v: %s", http, names(l))
		}
		if _, err := p.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"good","arguments":{"p":"ü","o":{"n":42.0}}}`), Options{}); err != nil {
			t.Fatal(err)
		}
		if http && fmt.Sprint(headers) != "map[Mcp-Param-N:42 Mcp-Param-Path:ü]" || !http && headers != nil {
			t.Errorf("http %v: %v", http, headers)
		}
	}
}

func TestHeaderMismatchReadsTheToolsAgainAndRetriesOnce(t *testing.T) {
	calls := 0
	s := &server{}
	s.handle = modern(func(context.Context, *conn, *rpc.Request) (string, error) {
		calls++
		return "", &rpc.Error{Code: rpc.CodeHeaderMismatch, Message: "header mismatch"}
	})
	p := connect(t, s, func(c *Config) { c.HTTP = true })
	if _, err := callTool(t, p, Options{}); code(err) != rpc.CodeHeaderMismatch || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestPitfallK15_ListenDropIsFollowedByAnotherListAndSubscription(t *testing.T) { // gap G10 of the SDK
	var listens, lists atomic.Int32
	again, listed := make(chan struct{}), make(chan struct{})
	s := &server{}
	m := modern(nil)
	s.handle = func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
		switch r.Method {
		case "tools/list":
			return `{"resultType":"complete","tools":[{"name":"t` + fmt.Sprint(lists.Add(1)) + `","inputSchema":{"type":"object"}}],"ttlMs":3600000,"cacheScope":"private"}`, nil
		case "subscriptions/listen":
			c.notify("notifications/subscriptions/acknowledged", `{"notifications":{"toolsListChanged":true}}`, r)
			switch listens.Add(1) {
			case 1:
				<-listed
				return "", rpc.ErrLost // a stream that ends without a result
			case 2:
				close(again)
			}
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		return m(ctx, c, r)
	}
	changed := make(chan List, 10)
	p := connect(t, s, func(c *Config) { c.ListChanged = func(l List) { changed <- l } })
	if _, err := p.List(t.Context(), Tools); err != nil {
		t.Fatal(err)
	}
	close(listed)
	<-again
	<-changed
	if l, _ := p.List(t.Context(), Tools); names(l) == "t1" {
		t.Error("changes during the gap were missed")
	}
}

func TestPitfallK19_SubscriptionThatAgreesToNothingIsNotOpenedAgain(t *testing.T) {
	s := &server{}
	m := modern(nil)
	ended := make(chan struct{}, 10)
	s.handle = func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
		if r.Method == "subscriptions/listen" {
			c.notify("notifications/subscriptions/acknowledged", `{"notifications":{}}`, r)
			ended <- struct{}{}
			return `{"resultType":"complete"}`, nil
		}
		return m(ctx, c, r)
	}
	p := connect(t, s)
	if err := p.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := p.Close(); err != nil { // waits for the loop
		t.Fatal(err)
	}
	if n := s.count("subscriptions/listen"); n != 1 {
		t.Errorf("opened %d times", n)
	}
}

func TestResourceSubscriptions(t *testing.T) {
	updated := make(chan string, 10)
	with := func(c *Config) { c.Updated = func(uri string) { updated <- uri } }
	sets := make(chan string, 10)
	s := &server{}
	m := modern(nil)
	s.handle = func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
		if r.Method == "subscriptions/listen" {
			set := string(fields(fields(r.Params)["notifications"])["resourceSubscriptions"])
			if set != "" {
				c.notify("notifications/resources/updated", `{"uri":"file:///a"}`, r)
			}
			sets <- set
		}
		return m(ctx, c, r)
	}
	p := connect(t, s, with)
	if err := p.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-sets
	if err := p.Subscribe(t.Context(), "file:///a"); err != nil {
		t.Fatal(err)
	}
	if got := <-sets; got != `["file:///a"]` || <-updated != "file:///a" {
		t.Error(got)
	}
	if err := p.Unsubscribe(t.Context(), "file:///a"); err != nil {
		t.Fatal(err)
	}
	if got := <-sets; got != "" {
		t.Error(got)
	}

	var subscribed atomic.Int32
	old := &server{}
	old.handle = older(func(_ context.Context, c *conn, r *rpc.Request) (string, error) {
		subscribed.Add(1)
		return `{}`, nil
	})
	p = connect(t, old, with)
	if err := p.Subscribe(t.Context(), "file:///a"); err != nil {
		t.Fatal(err)
	}
	old.conns[len(old.conns)-1].kill(errors.New("gone"))
	if err := p.Open(t.Context()); err != nil || subscribed.Load() != 2 {
		t.Errorf("subscribed %d times: the subscription was not restored: %v", subscribed.Load(), err)
	}
}
