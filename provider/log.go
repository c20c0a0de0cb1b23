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

// startSample records the beginning of the body if the log needs it.
func (a *attemptResponse) startSample() {
	if a.x.logsDebug(a.ctx) {
		a.sample = &sample{}
	}
}

func (x *exchange) logsDebug(ctx context.Context) bool {
	return x.client.Log != nil && x.client.Log.Enabled(ctx, slog.LevelDebug)
}

// logValue returns a body for the log: without secrets and shortened.
func (x *exchange) logValue(body []byte, total int) slog.Value {
	// Redact first, and cut a secret that the limit splits in two: it would not be found.
	text := x.secrets.cutTail(x.secrets.text(string(body)))
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
	if !x.logsDebug(ctx) {
		return
	}
	attrs := []slog.Attr{
		slog.String("model", x.secrets.text(x.client.displayName(x.model))),
		slog.Int("attempt", x.attempts),
		slog.String("url", x.secrets.text(logURL(req))),
		slog.Any("headers", logHeaders(req.Header)),
	}
	if x.req != nil { // bytes that are passed through have no form before encoding
		canonical, err := json.Marshal(x.req)
		if err != nil {
			canonical = []byte(err.Error())
		}
		attrs = append(attrs, slog.Attr{Key: "before", Value: x.logValue(canonical[:min(len(canonical), maxLogged)], len(canonical))})
	}
	x.client.Log.LogAttrs(ctx, slog.LevelDebug, "model request", append(attrs,
		slog.Attr{Key: "after", Value: x.logValue(x.payload[:min(len(x.payload), maxLogged)], len(x.payload))},
		slog.Int("bytes", len(x.payload)),
		slog.Any("losses", x.logLosses(x.losses)),
	)...)
}

// logPassed logs a response that was passed through, once its body is closed.
func (x *exchange) logPassed(a *attemptResponse) {
	log := x.client.Log
	if log == nil {
		return
	}
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("model", x.secrets.text(x.client.displayName(x.model))),
		slog.Int("attempt", x.attempts),
		slog.Int("status", a.StatusCode),
	}
	if a.sample != nil {
		level = slog.LevelDebug
		attrs = append(attrs, slog.Attr{Key: "body", Value: x.logValue(a.sample.head, a.sample.total)}, slog.Int("bytes", a.sample.total))
	}
	log.LogAttrs(a.ctx, level, "model response passed through", attrs...)
}

// logResponse logs a response and the losses of decoding it.
func (x *exchange) logResponse(a *attemptResponse, stop dragoman.Stop, usage dragoman.Usage, losses dragoman.Report) {
	log := x.client.Log
	if log == nil {
		return
	}
	attrs := []slog.Attr{
		slog.String("model", x.secrets.text(x.client.displayName(x.model))),
		slog.Int("attempt", x.attempts),
		slog.Int("status", a.StatusCode),
		slog.String("stop", string(stop.Reason)),
		slog.String("input_tokens", usage.Input.String()),
		slog.String("output_tokens", usage.Output.String()),
		slog.Int("lost", len(losses.Losses)),
	}
	if a.sample != nil {
		attrs = append(attrs,
			slog.Attr{Key: "body", Value: x.logValue(a.sample.head, a.sample.total)},
			slog.Int("bytes", a.sample.total),
			slog.Any("losses", x.logLosses(losses)))
	}
	level := slog.LevelInfo
	if a.sample != nil {
		level = slog.LevelDebug
	}
	log.LogAttrs(a.ctx, level, "model response", attrs...)
}

// logError logs an error of the server, from which secrets were removed.
func (x *exchange) logError(a *attemptResponse, e *dragoman.APIError) {
	log := x.client.Log
	if log == nil {
		return
	}
	attrs := []slog.Attr{
		slog.String("model", x.secrets.text(x.client.displayName(x.model))),
		slog.Int("attempt", x.attempts),
		slog.Int("status", a.StatusCode),
		slog.String("class", string(e.Class)),
		slog.String("message", e.Message),
		slog.String("request_id", e.RequestID),
		slog.Duration("retry_after", e.RetryAfter),
	}
	if a.sample != nil {
		attrs = append(attrs, slog.Attr{Key: "body", Value: x.logValue(a.sample.head, a.sample.total)})
	}
	log.LogAttrs(a.ctx, slog.LevelWarn, "model request refused", attrs...)
}

// logRetry logs that a request is sent again.
func (x *exchange) logRetry(ctx context.Context, err error, wait time.Duration) {
	if x.client.Log == nil {
		return
	}
	x.client.Log.LogAttrs(ctx, slog.LevelInfo, "model request retried",
		slog.String("model", x.secrets.text(x.client.displayName(x.model))),
		slog.Int("attempt", x.attempts+1),
		slog.Duration("wait", wait),
		slog.Bool("repaired", x.fixed),
		slog.String("error", x.secrets.error(err).Error()),
	)
}

// logURL returns a URL without the parts that may be secret.
func logURL(req *http.Request) string {
	u := *req.URL
	u.User = nil
	u.RawQuery = ""
	return u.String()
}

// logHeaders returns the names of the headers, with the values of those that are not secret.
func logHeaders(h http.Header) []string {
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

func (x *exchange) logLosses(r dragoman.Report) []string {
	out := make([]string, len(r.Losses))
	for i, l := range r.Losses {
		out[i] = x.secrets.text(l.String())
	}
	return out
}
