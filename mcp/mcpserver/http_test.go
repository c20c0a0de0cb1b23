package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/tool"
)

func TestPagesOfForeignOriginsAndHostsAreRefused(t *testing.T) {
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{weather}, Origins: []string{"https://app.example.com"}, Hosts: []string{"tools.example.com"}})
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
	for _, tc := range []struct {
		origins []string
		host    string
		want    int
	}{
		{nil, host, 200},
		{[]string{"http://" + host}, host, 200},
		{[]string{"https://app.example.com"}, host, 200},
		{[]string{"https://tools.example.com"}, "tools.example.com", 200},
		{[]string{"https://evil.example"}, host, 403},
		{[]string{"null"}, host, 403},
		{[]string{""}, host, 403},
		{[]string{"https://app.example.com", "https://app.example.com"}, host, 403},
		{[]string{"https://app.example.com.evil.example"}, host, 403},
		{[]string{"http://localhost:1"}, host, 403},
		{nil, "evil.example", 403},
		{[]string{"http://evil.example"}, "evil.example", 403}, // DNS rebinding
		{nil, "localhost:99", 200},
		{nil, "[::1]:99", 200},
		{nil, "127.0.0.1.evil.example", 403},
	} {
		for _, revision := range []string{modern, legacy} {
			c := &client{t: t, url: url, revision: revision}
			method, params := "tools/list", object(nil)
			if revision == legacy {
				method, params = "initialize", object{"protocolVersion": legacy, "capabilities": object{}, "clientInfo": object{"name": "t", "version": "1"}}
			}
			r := c.request(t.Context(), method, params)
			r.Header["Origin"], r.Host = tc.origins, tc.host
			if got := c.send(r, method); got.status != tc.want {
				t.Errorf("%s: origin %q and host %q get %d %s", revision, tc.origins, tc.host, got.status, got.raw)
			} else if tc.want == 200 && len(tc.origins) > 0 && got.header.Get("Access-Control-Allow-Origin") != tc.origins[0] {
				t.Errorf("origin %q may not read the response", tc.origins)
			}
		}
	}
}

func TestAServerOnAPublicAddressDoesNotTrustItsOwnName(t *testing.T) {
	s, err := mcpserver.New(mcpserver.Options{Name: "s", Tools: []tool.Tool{weather}})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "http://10.1.2.3/mcp", strings.NewReader("{}")) // no local address: not loopback
	r.Host = "evil.example"
	r.Header.Set("Origin", "http://evil.example")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("status %d", w.Code)
	}
}

func TestPitfallK16_ABrowserMaySendTheHeadersOfTheProtocol(t *testing.T) {
	_, url := serve(t, mcpserver.Options{
		Tools: []tool.Tool{weather}, Origins: []string{"https://app.example.com"},
		Auth: &mcpserver.Auth{Keys: []mcpserver.Key{{Name: "a", Hash: mcpserver.HashKey("k")}}},
	})
	for origin, want := range map[string]int{"https://app.example.com": 204, "https://evil.example": 403} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "mcp-param-region, x-evil")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		allowed := res.Header.Get("Access-Control-Allow-Headers")
		if res.StatusCode != want || want == 204 && (!strings.Contains(allowed, "mcp-param-region") || !strings.Contains(allowed, "Mcp-Name") || strings.Contains(allowed, "x-evil")) {
			t.Errorf("%s: %d, headers %q", origin, res.StatusCode, allowed)
		}
	}
}

func TestOddRequestsGetAClearRefusal(t *testing.T) {
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{weather}, MaxBody: 10_000, Subscriptions: true})
	session := newClient(t, url, legacy, nil).session
	old := newClient(t, url, "2025-03-26", nil).session
	type h = map[string]string
	m := h{"MCP-Protocol-Version": modern, "Mcp-Method": "tools/list"}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, tc := range []struct {
		name, method, body string
		header             h
		status             int
	}{
		{"GET without a session", "GET", "", nil, 405},
		{"GET of the modern revision", "GET", "", h{"MCP-Protocol-Version": modern, "Mcp-Session-Id": session}, 405},
		{"GET with an unknown session", "GET", "", h{"Mcp-Session-Id": "nope"}, 404},
		{"DELETE without a session", "DELETE", "", nil, 405},
		{"DELETE with an unknown session", "DELETE", "", h{"Mcp-Session-Id": "nope"}, 404},
		{"PUT", "PUT", "{}", nil, 405},
		{"an empty body", "POST", "", nil, 400},
		{"no JSON", "POST", "{", nil, 400},
		{"an array", "POST", "[]", nil, 400},
		{"a batch without a session", "POST", `[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`, nil, 400},
		{"a batch in a newer revision", "POST", `[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`, h{"Mcp-Session-Id": session, "MCP-Protocol-Version": legacy}, 400},
		{"a batch in the modern revision", "POST", `[{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}]`, m, 400},
		{"a batch with a modern request", "POST", `[{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}]`, h{"Mcp-Session-Id": old}, 400},
		{"a batch in its revision", "POST", `[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`, h{"Mcp-Session-Id": old}, 200},
		{"a huge batch", "POST", "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 60) + `{"jsonrpc":"2.0","id":1,"method":"ping"}]`, h{"Mcp-Session-Id": old}, 400},
		{"a number", "POST", "7", nil, 400},
		{"null", "POST", "null", nil, 400},
		{"no method", "POST", `{"jsonrpc":"2.0","id":1}`, nil, 400},
		{"a call without a session", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil, 400},
		{"a call without a session, with a version", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, h{"MCP-Protocol-Version": legacy}, 400},
		{"an unknown session", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, h{"Mcp-Session-Id": "nope"}, 404},
		{
			"an unknown version", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			h{"MCP-Protocol-Version": "2099-01-01", "Mcp-Method": "tools/list"},
			400,
		},
		{"a name twice", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{` + meta + `}}`, m, 400},
		{"a name twice in the parameters", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":1,"a":2,` + meta + `}}`, m, 400},
		{"an id that is null", "POST", `{"jsonrpc":"2.0","id":null,"method":"tools/list","params":{` + meta + `}}`, m, 400},
		{"an id that is an object", "POST", `{"jsonrpc":"2.0","id":{},"method":"tools/list","params":{` + meta + `}}`, m, 400},
		{"parameters that are an array", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`, m, 400},
		{"no capabilities", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, m, 400},
		{"a version only in the body", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`, nil, 400},
		{"a version only in the header", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, m, 400},
		{"another method in the header", "POST", `{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{` + meta + `}}`, m, 400},
		{"an unknown method", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/what","params":{` + meta + `}}`, h{"MCP-Protocol-Version": modern, "Mcp-Method": "tools/what"}, 404},
		{"initialize in the modern revision", "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` + meta + `}}`, h{"MCP-Protocol-Version": modern, "Mcp-Method": "initialize"}, 404},
		{"a notification", "POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, h{"MCP-Protocol-Version": modern, "Mcp-Method": "notifications/cancelled"}, 202},
		{"a large body", "POST", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 20_000) + `"}`, nil, 413},
		{"another type", "POST", `{}`, h{"Content-Type": "text/plain"}, 415},
		{"no event streams", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`, h{"MCP-Protocol-Version": modern, "Mcp-Method": "tools/list", "Accept": "application/json"}, 400},
		{"deep nesting", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":` + strings.Repeat("[", 4000) + strings.Repeat("]", 4000) + `}}`, h{"Mcp-Session-Id": session}, 400},
		{"a modern request still works", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`, m, 200},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, url, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for k, v := range tc.header {
			r.Header.Set(k, v)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != tc.status || bytes.Contains(body, []byte("internal error")) || bytes.Contains(body, []byte(`"code":0`)) {
			t.Errorf("%s: status %d, want %d: %s", tc.name, res.StatusCode, tc.status, body)
		}
		if res.StatusCode == http.StatusMethodNotAllowed && res.Header.Get("Allow") == "" {
			t.Errorf("%s: 405 without Allow", tc.name)
		}
	}
}

func TestANameMayBeWrittenInBase64InItsHeader(t *testing.T) {
	got := ""
	_, url := serve(t, mcpserver.Options{Templates: []mcpserver.ResourceTemplate{{Template: "test://{name}", Read: func(_ context.Context, _ string, v map[string]string) ([]mcpserver.Content, error) {
		got = v["name"]
		return []mcpserver.Content{{Text: "x"}}, nil
	}}}})
	c := newClient(t, url, modern, nil)
	for header, status := range map[string]int{"=?base64?dGVzdDovL8O8?=": 200, "=?base64?dGVzdDovL2E=?=": 400, "=?base64?***?=": 400} {
		r := c.request(t.Context(), "resources/read", object{"uri": "test://ü"})
		r.Header.Set("Mcp-Name", header)
		if res := c.send(r, "resources/read"); res.status != status || status == 400 && res.code != -32020 {
			t.Errorf("%s: %d %d %s", header, res.status, res.code, res.text)
		}
	}
	if got != "ü" {
		t.Errorf("read %q", got)
	}
}

func TestSessionsBelongToTheirUser(t *testing.T) {
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{weather}, Auth: &mcpserver.Auth{Keys: []mcpserver.Key{
		{Name: "ann", Hash: mcpserver.HashKey("ann-key")}, {Name: "eve", Hash: mcpserver.HashKey("eve-key")},
	}}})
	ann := (&client{t: t, url: url, revision: legacy, header: bearer("ann-key")}).open()
	eve := &client{t: t, url: url, revision: legacy, header: bearer("eve-key"), session: ann.session}
	if r := eve.do("tools/list", nil); r.status != 403 && r.status != 404 {
		t.Errorf("status %d %s", r.status, r.result)
	}
	if r := ann.do("tools/list", nil); r.status != 200 {
		t.Errorf("status %d", r.status)
	}
}

func TestAThousandSessionsAreBounded(t *testing.T) {
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{weather}, MaxSessions: 50, MaxRequests: 2000})
	var opened, refused atomic.Int64
	var mu sync.Mutex
	var ids []string
	var wg sync.WaitGroup
	limit := make(chan struct{}, 100)
	for range 1000 {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			c := &client{t: t, url: url, revision: legacy}
			r := c.do("initialize", object{"protocolVersion": legacy, "capabilities": object{}, "clientInfo": object{"name": "t", "version": "1"}})
			switch r.status {
			case 200:
				opened.Add(1)
				mu.Lock()
				ids = append(ids, r.header.Get("Mcp-Session-Id"))
				mu.Unlock()
			case 503:
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if opened.Load() != 50 || refused.Load() != 950 {
		t.Fatalf("%d opened, %d refused", opened.Load(), refused.Load())
	}
	// The modern revision has no sessions and still works, and an ended session makes room.
	if r := newClient(t, url, modern, nil).do("tools/list", nil); r.status != 200 {
		t.Errorf("modern: %d", r.status)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", ids[0])
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode/100 != 2 {
		t.Fatal(err, res)
	}
	_ = res.Body.Close()
	deadline := time.Now().Add(10 * time.Second)
	for {
		c := &client{t: t, url: url, revision: legacy}
		if r := c.do("initialize", object{"protocolVersion": legacy, "capabilities": object{}, "clientInfo": object{"name": "t", "version": "1"}}); r.status == 200 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("an ended session makes no room")
		}
	}
}

func TestRequestsAndStreamsAreBounded(t *testing.T) {
	release, began := make(chan struct{}), make(chan struct{}, 3)
	hang := tool.New("hang", "Hangs.", func(ctx context.Context, _ struct{}) (string, error) {
		began <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return "", nil
	})
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{hang}, MaxRequests: 3, MaxStreams: 2})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if r := newClient(t, url, modern, nil).call("hang", nil); r.status != 200 {
				t.Errorf("status %d", r.status)
			}
		})
	}
	for range 3 {
		<-began
	}
	if r := newClient(t, url, modern, nil).do("tools/list", nil); r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("the fourth request gets %d", r.status)
	}
	close(release)
	wg.Wait()

	// Streams have a limit of their own.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	refused := 0
	for range 4 {
		c := newClient(t, url, modern, nil)
		res, err := http.DefaultClient.Do(c.request(ctx, "subscriptions/listen", object{"notifications": object{"toolsListChanged": true}}))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode == http.StatusServiceUnavailable {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("%d of 4 streams were refused", refused)
	}
	if r := newClient(t, url, modern, nil).do("tools/list", nil); r.status != 200 {
		t.Errorf("streams block requests: %d", r.status)
	}
}

func TestAnErrorAfterTheFirstEventIsAnEvent(t *testing.T) {
	seen := make(chan struct{})
	late := tool.New("late", "Needs a model, after it began.", func(ctx context.Context, _ struct{}) (string, error) {
		mcpserver.Progress(ctx, 1, 2, "begun")
		<-seen
		return "", mcpserver.Require(ctx, mcpserver.CapSampling)
	})
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{late}})
	c := newClient(t, url, modern, nil)
	c.note = func(json.RawMessage) { close(seen) }
	r := c.call("late", nil, object{"_meta": object{"progressToken": 1}})
	if r.code != -32021 || len(r.others) != 1 {
		t.Errorf("code %d after %s", r.code, r.others)
	}
}

func TestAuthorizationFollowsTheSpecification(t *testing.T) {
	const resource = "https://tools.example.com/mcp"
	var token atomic.Value
	peek := tool.New("peek", "Peeks.", func(ctx context.Context, _ struct{}) (string, error) {
		c, _ := mcpserver.CallerFrom(ctx)
		b, err := json.Marshal(c)
		token.Store(string(b))
		return c.Principal.ID, err
	}, tool.Set(plain))
	now := time.Now()
	s, url := serve(t, mcpserver.Options{Tools: []tool.Tool{peek, weather}, Auth: &mcpserver.Auth{
		Resource: resource, AuthorizationServers: []string{"https://login.example.com"}, Scopes: []string{"mcp"}, ToolScopes: map[string][]string{"get_weather": {"weather"}},
		Verify: func(_ context.Context, token string) (mcpserver.Principal, error) {
			p := mcpserver.Principal{ID: "ann", Scopes: []string{"mcp"}, Audience: []string{resource + "/"}}
			switch token {
			case "good":
			case "weather":
				p.Scopes = append(p.Scopes, "weather")
			case "foreign":
				p.Audience = []string{"https://other.example.com/mcp"}
			case "anonymous":
				p.ID = ""
			case "old":
				p.Expires = now.Add(-time.Minute)
			case "narrow":
				p.Scopes = nil
			case "down":
				return p, errors.New("the database is down")
			default:
				return p, fmt.Errorf("%w: unknown", mcpserver.ErrToken)
			}
			return p, nil
		},
	}})
	const where = `resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"`
	for _, tc := range []struct {
		header, tool string
		status       int
		challenge    []string
	}{
		{"", "peek", 401, []string{where, `scope="mcp"`}},
		{"Bearer unknown", "peek", 401, []string{where, `error="invalid_token"`, `scope="mcp"`}},
		{"Basic good", "peek", 401, []string{`error="invalid_token"`}},
		{"Bearer foreign", "peek", 401, []string{`error="invalid_token"`}},
		{"Bearer anonymous", "peek", 401, []string{`error="invalid_token"`}},
		{"Bearer old", "peek", 401, []string{`error="invalid_token"`}},
		{"Bearer narrow", "peek", 403, []string{where, `error="insufficient_scope"`, `scope="mcp"`}},
		{"Bearer good", "get_weather", 403, []string{`error="insufficient_scope"`, `scope="mcp weather"`}},
		{"Bearer weather", "get_weather", 200, nil},
		{"Bearer down", "peek", 500, nil},
		{"bearer good", "peek", 200, nil},
	} {
		c := &client{t: t, url: url, revision: modern}
		if tc.header != "" {
			c.header = http.Header{"Authorization": {tc.header}}
		}
		args := object{"name": "Rome"}
		if tc.tool == "peek" {
			args = nil
		}
		r := c.call(tc.tool, args)
		if r.status != tc.status {
			t.Errorf("%q for %s: status %d %s", tc.header, tc.tool, r.status, r.raw)
		}
		for _, want := range tc.challenge {
			if got := r.header.Get("WWW-Authenticate"); !strings.Contains(got, want) {
				t.Errorf("%q: the challenge %q lacks %q", tc.header, got, want)
			}
		}
	}
	if got := token.Load().(string); strings.Contains(got, "good") {
		t.Errorf("the tool sees the token: %s", got)
	}
	c := &client{t: t, url: url + "?access_token=good", revision: modern}
	if r := c.call("peek", nil); r.status != 400 {
		t.Errorf("a token in the URL: %d", r.status)
	}
	// A batch cannot go around the scopes of a tool.
	old := (&client{t: t, url: url, revision: "2025-03-26", header: bearer("good")}).open()
	if r := old.send(old.post(t.Context(), []byte(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_weather","arguments":{"name":"x"}}}]`)), ""); r.status != 403 {
		t.Errorf("a batch: %d %s", r.status, r.raw)
	}
	for path, want := range map[string]int{"/.well-known/oauth-protected-resource": 200, "/.well-known/oauth-protected-resource/mcp": 200, "/.well-known/oauth-protected-resource/other": 404} {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://tools.example.com"+path, nil))
		if w.Code != want {
			t.Errorf("%s: %d", path, w.Code)
		}
		if want == 200 && (at[string](w.Body.Bytes(), "resource") != resource || len(at[[]string](w.Body.Bytes(), "scopes_supported")) != 2 || w.Header().Get("Access-Control-Allow-Origin") != "*") {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

func TestOnePrincipalCannotTakeAllPlaces(t *testing.T) {
	release, began := make(chan struct{}), make(chan struct{}, 2)
	hang := tool.New("hang", "Hangs.", func(context.Context, struct{}) (string, error) {
		began <- struct{}{}
		<-release
		return "", nil
	})
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{hang}, MaxRequests: 4, Auth: &mcpserver.Auth{Keys: []mcpserver.Key{
		{Name: "ann", Hash: mcpserver.HashKey("ann-key")}, {Name: "eve", Hash: mcpserver.HashKey("eve-key")},
	}}})
	as := func(key string) *client {
		return &client{t: t, url: url, revision: modern, header: bearer(key)}
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { as("eve-key").call("hang", nil) })
		<-began
	}
	if r := as("eve-key").do("tools/list", nil); r.status != http.StatusServiceUnavailable {
		t.Errorf("the third request of one principal gets %d", r.status)
	}
	if r := as("ann-key").do("tools/list", nil); r.status != http.StatusOK {
		t.Errorf("the other principal gets %d", r.status)
	}
	close(release)
	wg.Wait()
}
