package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// metrics counts exchanges, for Prometheus. The zero value is ready.
type metrics struct {
	running atomic.Int64
	// cutOff is the number of responses that were cut off by a shutdown.
	cutOff atomic.Int64

	mu     sync.Mutex
	series map[labels]*series
	// failures counts failures of models, by upstream.
	failures map[string]int64
	// decisions counts policy decisions, by effect.
	decisions map[tool.Effect]int64
}

// labels identify a series. They do not include model names from clients, whose number is
// unbounded.
type labels struct {
	dialect         dragoman.Dialect
	route, upstream string
	key             string
	status          int
}

type series struct {
	requests, streams, transparent, losses, left int64
	input, output                                int64
	seconds                                      histogram
	first                                        histogram
}

// bucketBounds are the bucket limits of the histograms, in seconds.
var bucketBounds = [...]float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}

type histogram struct {
	counts [len(bucketBounds) + 1]int64
	sum    float64
	n      int64
}

func (h *histogram) add(d time.Duration) {
	s := d.Seconds()
	i, _ := slices.BinarySearch(bucketBounds[:], s)
	h.counts[i]++
	h.sum += s
	h.n++
}

func (m *metrics) begin() { m.running.Add(1) }

func (m *metrics) end(e *entry) {
	m.running.Add(-1)
	m.add(e)
}

// add counts an exchange.
func (m *metrics) add(e *entry) {
	l := labels{dialect: e.dialect, route: e.route, upstream: e.series, key: e.key, status: e.status}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.series[l]
	if s == nil {
		if m.series == nil {
			m.series = map[labels]*series{}
		}
		s = new(series)
		m.series[l] = s
	}
	for _, f := range e.failures {
		if !f.isModelFailure() {
			continue
		}
		if m.failures == nil {
			m.failures = map[string]int64{}
		}
		m.failures[f.series]++
	}
	for i := range e.decisions {
		if m.decisions == nil {
			m.decisions = map[tool.Effect]int64{}
		}
		m.decisions[e.decisions[i].Effect]++
	}
	s.requests++
	s.streams += boolToInt(e.stream && e.status == http.StatusOK)
	s.transparent += boolToInt(e.transparent)
	s.left += boolToInt(e.clientLeft)
	for _, l := range e.losses {
		s.losses += boolToInt(isLoss(&l))
	}
	s.input += e.usage.Input.Or(0)
	s.output += e.usage.Output.Or(0)
	s.seconds.add(e.took)
	if e.first > 0 {
		s.first.add(e.first)
	}
}

func boolToInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// serveMetrics serves the metrics in the Prometheus format.
func (g *Gateway) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if err := g.requireKey(r); err != nil {
		// Scrapers with a valid key come all the time; only other requests are logged.
		g.auxiliary(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = g.requireKey(r)
			http.Error(w, err.Error(), http.StatusUnauthorized)
		})).ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(g.metrics.text() + g.mcpMetrics.text(g.mcp.Load()))) // the client may have disconnected
}

// text returns the metrics in the Prometheus exposition format.
func (m *metrics) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(m.series), func(a, b labels) int {
		return cmp.Or(cmp.Compare(a.dialect, b.dialect), cmp.Compare(a.route, b.route), cmp.Compare(a.upstream, b.upstream), cmp.Compare(a.key, b.key), cmp.Compare(a.status, b.status))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "# HELP dragoman_requests_running Requests in progress.\n# TYPE dragoman_requests_running gauge\ndragoman_requests_running %d\n", m.running.Load())
	for _, c := range []struct {
		name, help string
		of         func(*series) int64
	}{
		{"dragoman_requests_total", "Completed requests.", func(s *series) int64 { return s.requests }},
		{"dragoman_streams_total", "Completed streamed requests.", func(s *series) int64 { return s.streams }},
		{"dragoman_transparent_total", "Responses passed through byte for byte.", func(s *series) int64 { return s.transparent }},
		{"dragoman_clients_left_total", "Requests whose client disconnected before the response was complete.", func(s *series) int64 { return s.left }},
		{"dragoman_losses_total", "Losses reported by conversions.", func(s *series) int64 { return s.losses }},
		{"dragoman_input_tokens_total", "Prompt tokens reported by upstreams.", func(s *series) int64 { return s.input }},
		{"dragoman_output_tokens_total", "Response tokens reported by upstreams.", func(s *series) int64 { return s.output }},
	} {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s counter\n", c.name, c.help, c.name)
		for _, k := range keys {
			fmt.Fprintf(&b, "%s{%s} %d\n", c.name, k, c.of(m.series[k]))
		}
	}
	fmt.Fprint(&b, "# HELP dragoman_upstream_failures_total Failed upstream requests, including those after which another model of the route responded.\n# TYPE dragoman_upstream_failures_total counter\n")
	for _, upstream := range slices.Sorted(maps.Keys(m.failures)) {
		fmt.Fprintf(&b, "dragoman_upstream_failures_total{upstream=%q} %d\n", upstream, m.failures[upstream])
	}
	fmt.Fprint(&b, "# HELP dragoman_policy_decisions_total Decisions of policies on model calls.\n# TYPE dragoman_policy_decisions_total counter\n")
	for _, effect := range slices.Sorted(maps.Keys(m.decisions)) {
		fmt.Fprintf(&b, "dragoman_policy_decisions_total{effect=%q} %d\n", string(effect), m.decisions[effect])
	}
	for _, h := range []struct {
		name, help string
		of         func(*series) *histogram
	}{
		{"dragoman_request_seconds", "Duration of requests.", func(s *series) *histogram { return &s.seconds }},
		{"dragoman_first_byte_seconds", "Time to the first byte of responses.", func(s *series) *histogram { return &s.first }},
	} {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s histogram\n", h.name, h.help, h.name)
		for _, k := range keys {
			h.of(m.series[k]).write(&b, h.name, k.String())
		}
	}
	return b.String()
}

func (h *histogram) write(b *strings.Builder, name, labels string) {
	sum := int64(0)
	for i, bound := range bucketBounds {
		sum += h.counts[i]
		fmt.Fprintf(b, "%s_bucket{%s,le=\"%s\"} %d\n", name, labels, strconv.FormatFloat(bound, 'g', -1, 64), sum)
	}
	fmt.Fprintf(b, "%s_bucket{%s,le=\"+Inf\"} %d\n", name, labels, h.n)
	fmt.Fprintf(b, "%s_sum{%s} %g\n%s_count{%s} %d\n", name, labels, h.sum, name, labels, h.n)
}

// String returns the labels in the Prometheus format.
func (l labels) String() string {
	return fmt.Sprintf("dialect=%q,route=%q,upstream=%q,key=%q,status=\"%d\"", string(l.dialect), l.route, l.upstream, l.key, l.status)
}
