package provider

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// maxLogged bounds each body in the log.
const maxLogged = 16 << 10

// sample holds the beginning of a body and its length.
type sample struct {
	head  []byte
	total int
}

func (s *sample) add(p []byte) {
	s.total += len(p)
	if room := maxLogged - len(s.head); room > 0 {
		s.head = append(s.head, p[:min(room, len(p))]...)
	}
}

// sample records the beginning of the body if the log needs it.
func (a *answer) sample() {
	if a.x.debugs(a.ctx) {
		a.seen = &sample{}
	}
}

func (x *exchange) debugs(ctx context.Context) bool {
	return x.client.Log != nil && x.client.Log.Enabled(ctx, slog.LevelDebug)
}

// logged returns a body for the log: without secrets and shortened.
func (x *exchange) logged(body []byte, total int) slog.Value {
	// Redact first, and cut a secret that the limit splits in two: it would not be found.
	text := x.secrets.cut(x.secrets.text(string(body)))
	if len(text) > maxLogged {
		text = text[:maxLogged]
	}
	if total > len(body) || len(body) > maxLogged {
		text += "…"
	}
	return slog.StringValue(strings.ToValidUTF8(text, "?"))
}

// logRequest logs a request before and after encoding, with the losses.
func (x *exchange) logRequest(ctx context.Context, req *http.Request) {
	if !x.debugs(ctx) {
		return
	}
	attrs := []slog.Attr{
		slog.String("model", x.secrets.text(x.client.label(x.model))),
		slog.Int("attempt", x.tries),
		slog.String("url", x.secrets.text(shownURL(req))),
		slog.Any("headers", shownHeaders(req.Header)),
	}
	if x.req != nil { // bytes that are passed through have no form before encoding
		canonical, err := json.Marshal(x.req)
		if err != nil {
			canonical = []byte(err.Error())
		}
		attrs = append(attrs, slog.Attr{Key: "before", Value: x.logged(canonical[:min(len(canonical), maxLogged)], len(canonical))})
	}
	x.client.Log.LogAttrs(ctx, slog.LevelDebug, "model request", append(attrs,
		slog.Attr{Key: "after", Value: x.logged(x.payload[:min(len(x.payload), maxLogged)], len(x.payload))},
		slog.Int("bytes", len(x.payload)),
		slog.Any("losses", x.shownLosses(x.losses)),
	)...)
}

// logPassed logs a response that was passed through, once its body is closed.
func (x *exchange) logPassed(a *answer) {
	log := x.client.Log
	if log == nil {
		return
	}
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("model", x.secrets.text(x.client.label(x.model))),
		slog.Int("attempt", x.tries),
		slog.Int("status", a.StatusCode),
	}
	if a.seen != nil {
		level = slog.LevelDebug
		attrs = append(attrs, slog.Attr{Key: "body", Value: x.logged(a.seen.head, a.seen.total)}, slog.Int("bytes", a.seen.total))
	}
	log.LogAttrs(a.ctx, level, "model response passed through", attrs...)
}

// logAnswer logs a response and the losses of decoding it.
func (x *exchange) logAnswer(a *answer, stop dragoman.Stop, usage dragoman.Usage, losses dragoman.Report) {
	log := x.client.Log
	if log == nil {
		return
	}
	attrs := []slog.Attr{
		slog.String("model", x.secrets.text(x.client.label(x.model))),
		slog.Int("attempt", x.tries),
		slog.Int("status", a.StatusCode),
		slog.String("stop", string(stop.Reason)),
		slog.String("input_tokens", usage.Input.String()),
		slog.String("output_tokens", usage.Output.String()),
		slog.Int("lost", len(losses.Losses)),
	}
	if a.seen != nil {
		attrs = append(attrs,
			slog.Attr{Key: "body", Value: x.logged(a.seen.head, a.seen.total)},
			slog.Int("bytes", a.seen.total),
			slog.Any("losses", x.shownLosses(losses)))
	}
	level := slog.LevelInfo
	if a.seen != nil {
		level = slog.LevelDebug
	}
	log.LogAttrs(a.ctx, level, "model response", attrs...)
}

// logRefusal logs an error of the server, from which secrets were removed.
func (x *exchange) logRefusal(a *answer, e *dragoman.APIError) {
	log := x.client.Log
	if log == nil {
		return
	}
	attrs := []slog.Attr{
		slog.String("model", x.secrets.text(x.client.label(x.model))),
		slog.Int("attempt", x.tries),
		slog.Int("status", a.StatusCode),
		slog.String("class", string(e.Class)),
		slog.String("message", e.Message),
		slog.String("request_id", e.RequestID),
		slog.Duration("retry_after", e.RetryAfter),
	}
	if a.seen != nil {
		attrs = append(attrs, slog.Attr{Key: "body", Value: x.logged(a.seen.head, a.seen.total)})
	}
	log.LogAttrs(a.ctx, slog.LevelWarn, "model request refused", attrs...)
}

// logRetry logs that a request is sent again.
func (x *exchange) logRetry(ctx context.Context, err error, wait time.Duration) {
	if x.client.Log == nil {
		return
	}
	x.client.Log.LogAttrs(ctx, slog.LevelInfo, "model request retried",
		slog.String("model", x.secrets.text(x.client.label(x.model))),
		slog.Int("attempt", x.tries+1),
		slog.Duration("wait", wait),
		slog.Bool("repaired", x.cured),
		slog.String("error", x.secrets.error(err).Error()),
	)
}

// shownURL returns a URL without the parts that may be secret.
func shownURL(req *http.Request) string {
	u := *req.URL
	u.User = nil
	u.RawQuery = ""
	return u.String()
}

// shownHeaders returns the names of the headers, with the values of those that are not secret.
func shownHeaders(h http.Header) []string {
	var out []string
	for name, values := range h {
		shown := redacted
		if isPublic(name) {
			shown = strings.Join(values, ", ")
		}
		out = append(out, name+": "+shown)
	}
	slices.Sort(out)
	return out
}

func (x *exchange) shownLosses(r dragoman.Report) []string {
	out := make([]string, len(r.Losses))
	for i, l := range r.Losses {
		out[i] = x.secrets.text(l.String())
	}
	return out
}
