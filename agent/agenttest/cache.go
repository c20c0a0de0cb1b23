// Package agenttest helps to test agents.
//
// A [CacheProbe] checks that the requests of an agent keep their beginning from turn to
// turn. Prompt caches of model servers depend on that: a changed element makes the
// server read everything after it again, at the full price.
//
//	server := httptest.NewServer(sim.Handler(sim.Config{})) // no network, no key
//	defer server.Close()
//	probe := &agenttest.CacheProbe{}
//	a.Model = &provider.Client{
//		Codec: openaichat.Codec{}, Model: "sim/planner", BaseURL: server.URL + "/v1",
//		HTTP: &http.Client{Transport: probe},
//	}
//	_, err := a.Run(ctx, "What is the weather in Oslo?")
//	probe.Check(t)
package agenttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// CacheProbe records the bodies of requests, and compares each with the previous one:
//
//   - Fields other than lists must be equal.
//   - The elements of a list, such as messages and tools, must be equal, and more may
//     follow. The last element may gain blocks, the elements of its own lists.
//   - Cache markers (cache_control, cachePoint) may move.
//
// The zero value is ready. It is safe for concurrent use, but the order of concurrent
// requests is not defined: probe one run at a time.
type CacheProbe struct {
	// Next sends requests; nil means [http.DefaultTransport].
	Next http.RoundTripper
	// Ignore names fields that may change, at any depth. Use it for settings that are not
	// part of the prompt, such as a request id.
	Ignore []string

	mu     sync.Mutex
	bodies [][]byte
}

var _ http.RoundTripper = (*CacheProbe)(nil)

// RoundTrip records the request and sends it. Requests without a body are not recorded.
func (p *CacheProbe) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil && req.Body != http.NoBody {
		body, err := io.ReadAll(req.Body)
		if closed := req.Body.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return nil, fmt.Errorf("agenttest: reading the request: %w", err)
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
		p.mu.Lock()
		p.bodies = append(p.bodies, body)
		p.mu.Unlock()
	}
	next := p.Next
	if next == nil {
		next = http.DefaultTransport
	}
	return next.RoundTrip(req)
}

// Reset discards the recorded requests, before another conversation begins.
func (p *CacheProbe) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodies = nil
}

// Requests returns the number of recorded requests.
func (p *CacheProbe) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.bodies)
}

// Err returns the first change that breaks the cache as a [*CacheBreak], or nil.
func (p *CacheProbe) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return CompareRequests(p.bodies, p.Ignore...)
}

// Check fails the test if a request breaks the cache, or if fewer than two requests were
// recorded: then nothing was compared.
func (p *CacheProbe) Check(t testing.TB) {
	t.Helper()
	if n := p.Requests(); n < 2 {
		t.Fatalf("agenttest: recorded %d requests, need at least two to compare; is the probe the transport of the agent's model?", n)
	}
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
}

// CacheBreak is a change in a request that invalidates the prompt cache for everything
// after it.
type CacheBreak struct {
	// Request is the number of the request, from 1.
	Request int
	// Path is the JSON pointer to the first element that changed.
	Path string
	// Previous and Current are the JSON of the element in the previous request and in this one;
	// empty means that it is missing.
	Previous, Current string
}

// Error describes the change.
func (e *CacheBreak) Error() string {
	return fmt.Sprintf("agenttest: request %d changes %s, which breaks the prompt cache:\n was %s\n is  %s", e.Request, e.Path, shortened(e.Previous), shortened(e.Current))
}

// shortened truncates a text for an error.
func shortened(s string) string {
	const most = 600
	switch {
	case s == "":
		return "(missing)"
	case len(s) > most:
		return fmt.Sprintf("%s … (%d bytes)", s[:most], len(s))
	default:
		return s
	}
}

// CompareRequests compares the bodies of consecutive requests of one conversation as a
// [CacheProbe] does. The error is a [*CacheBreak], or says which body is not a JSON
// object.
func CompareRequests(bodies [][]byte, ignore ...string) error {
	c := comparison{ignored: map[string]bool{"cache_control": true, "cachePoint": true}}
	for _, name := range ignore {
		c.ignored[name] = true
	}
	var before map[string]any
	for i, body := range bodies {
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		var now map[string]any
		if err := d.Decode(&now); err != nil {
			return fmt.Errorf("agenttest: request %d is not a JSON object: %w", i+1, err)
		}
		now, _ = c.prune(now).(map[string]any)
		if i > 0 {
			if b := c.object("", before, now, true); b != nil {
				b.Request = i + 1
				return b
			}
		}
		before = now
	}
	return nil
}

// comparison compares two requests.
type comparison struct{ ignored map[string]bool }

// prune removes the fields that may change, and list elements that held nothing else.
func (c comparison) prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, inner := range v {
			if !c.ignored[k] {
				out[k] = c.prune(inner)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, inner := range v {
			pruned := c.prune(inner)
			if m, ok := pruned.(map[string]any); ok && len(m) == 0 {
				if was, ok := inner.(map[string]any); ok && len(was) > 0 {
					continue
				}
			}
			out = append(out, pruned)
		}
		return out
	default:
		return v
	}
}

// object compares objects. Lists in them may grow; with blocks, the last element of a
// list may, too.
func (c comparison) object(at string, was, is map[string]any, blocks bool) *CacheBreak {
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		path := at + "/" + k
		a, had := was[k]
		b, has := is[k]
		if !had || !has {
			return difference(path, a, b, had, has)
		}
		if d := c.value(path, a, b, blocks); d != nil {
			return d
		}
	}
	return nil
}

// value compares a field.
func (c comparison) value(at string, was, is any, blocks bool) *CacheBreak {
	switch a := was.(type) {
	case map[string]any:
		if b, ok := is.(map[string]any); ok {
			return c.object(at, a, b, blocks)
		}
	case []any:
		if b, ok := is.([]any); ok {
			return c.list(at, a, b, blocks)
		}
	}
	if text(was) != text(is) {
		return difference(at, was, is, true, true)
	}
	return nil
}

// list compares the elements that both lists have.
func (c comparison) list(at string, was, is []any, blocks bool) *CacheBreak {
	for i, a := range was {
		path := fmt.Sprintf("%s/%d", at, i)
		if i >= len(is) {
			return difference(path, a, nil, true, false)
		}
		b := is[i]
		if text(a) == text(b) {
			continue
		}
		m, ok := a.(map[string]any)
		n, also := b.(map[string]any)
		if blocks && ok && also && i == len(was)-1 {
			if d := c.compareLast(path, m, n); d != nil {
				return d
			}
			continue
		}
		return difference(path, a, b, true, true)
	}
	return nil
}

// compareLast compares the last element of a list, which may gain blocks at its end.
func (c comparison) compareLast(at string, was, is map[string]any) *CacheBreak {
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		a, b := was[k], is[k]
		x, ok := a.([]any)
		y, also := b.([]any)
		if ok && also {
			if d := c.list(at+"/"+k, x, y, false); d != nil {
				return d
			}
			continue
		}
		if text(a) != text(b) {
			return difference(at+"/"+k, a, b, a != nil, b != nil)
		}
	}
	return nil
}

func difference(at string, was, is any, had, has bool) *CacheBreak {
	b := &CacheBreak{Path: at}
	if had {
		b.Previous = text(was)
	}
	if has {
		b.Current = text(is)
	}
	return b
}

// text returns a value as JSON with sorted keys.
func text(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b.Bytes()))
}
