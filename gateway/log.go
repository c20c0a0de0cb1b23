package gateway

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// entry is the record of an exchange for the log and the metrics. Except for names it has no
// content from clients or models.
type entry struct {
	id, path        string
	dialect         dragoman.Dialect
	key, model      string
	route, upstream string
	series          string // name of the upstream in metrics
	stream          bool
	// transparent reports that the response was passed through byte for byte.
	transparent bool
	// started is the start by the monotonic clock; made by the clock of the gateway.
	started, created time.Time
	first, took      time.Duration
	status           int
	bytes            int64
	usage            dragoman.Usage
	// events is the number of stream events, which approximates the number of tokens.
	events int64
	losses []dragoman.Loss
	// decisions are the policy decisions, in order.
	decisions []decision
	// failures are the models that were called and failed, before another one responded or all
	// failed.
	failures []failure
	err      error
	// errorSent reports that the client got the error within a stream, whole that it got the end of
	// one, left that it disconnected before.
	errorSent, complete, clientLeft bool
}

// failure is the failure of one model of a route.
type failure struct {
	upstream, series string
	err              error
}

// isModelFailure reports whether the failure is caused by the model or its server. An error in the
// request would occur with every model.
func (f *failure) isModelFailure() bool {
	var own *ownError
	if errors.As(f.err, &own) { // the model was not called
		return false
	}
	switch apiError(f.err).Class {
	case dragoman.ErrorBadRequest, dragoman.ErrorContextLength, dragoman.ErrorTooLarge, dragoman.ErrorPolicy:
		return false
	default:
		return true
	}
}

// failedOver lists the models that failed before the one that responded, with the reasons.
func (e *entry) failedOver() string {
	var all []string
	for _, f := range e.failures {
		if f.upstream != e.upstream {
			all = append(all, f.upstream+": "+truncate(f.err.Error()))
		}
	}
	return strings.Join(all, "; ")
}

// maxLogged limits foreign texts in the log.
const maxLogged = 200

func truncate(s string) string {
	if len(s) > maxLogged {
		return s[:maxLogged] + "…"
	}
	return s
}

// log writes the log line of an exchange.
func (e *entry) log(ctx context.Context, to *slog.Logger) {
	if to == nil {
		return
	}
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("id", e.id), slog.String("dialect", string(e.dialect)), slog.String("path", truncate(e.path)), slog.String("key", e.key),
		slog.String("model", truncate(e.model)), slog.String("route", e.route), slog.String("upstream", e.upstream),
		slog.Int("status", e.status), slog.Bool("stream", e.stream), slog.Bool("transparent", e.transparent),
		slog.Duration("took", e.took), slog.Duration("first_byte", e.first), slog.Int64("bytes", e.bytes),
	}
	for _, c := range []struct {
		name string
		n    dragoman.Count
	}{{"input_tokens", e.usage.Input}, {"cached_tokens", e.usage.CacheRead}, {"output_tokens", e.usage.Output}, {"reasoning_tokens", e.usage.Reasoning}} {
		if c.n.Known {
			attrs = append(attrs, slog.Int64(c.name, c.n.N))
		}
	}
	if s := lossSummary(e.losses); s != "" {
		attrs = append(attrs, slog.String("losses", s))
	}
	if len(e.decisions) > 0 {
		all := make([]string, len(e.decisions))
		for i := range e.decisions {
			all[i] = e.decisions[i].String()
		}
		attrs = append(attrs, slog.String("policy", strings.Join(all, "; ")))
	}
	if s := e.failedOver(); s != "" {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("failed_over", s))
	}
	if e.clientLeft {
		attrs = append(attrs, slog.Bool("client_left", true))
	}
	if e.err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", truncate(e.err.Error())))
	}
	to.LogAttrs(ctx, level, "request", attrs...)
}
