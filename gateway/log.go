package gateway

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// entry is what is remembered of an exchange, for the log and the metrics. Nothing in
// it was said by a client or a model, but for names.
type entry struct {
	id, path        string
	dialect         dragoman.Dialect
	key, model      string
	route, upstream string
	series          string // of the upstream
	stream          bool
	// transparent says that the answer was passed on byte for byte.
	transparent bool
	// begun is when it began, by the clock that measures; made by the gateway's own.
	begun, made time.Time
	first, took time.Duration
	status      int
	bytes       int64
	usage       dragoman.Usage
	// pieces is about how many tokens of an answer came: events of a stream.
	pieces int64
	losses []dragoman.Loss
	// decisions are those of policies, in their order.
	decisions []decision
	// failed are the models that were asked and did not answer: another one did, or none.
	failures []failure
	err      error
	// told says that the client was told of the error within a stream, whole that it has
	// been sent the end of one, left that it has gone before that.
	told, whole, left bool
}

// failure is that of one model of a route.
type failure struct {
	upstream, series string
	err              error
}

// ofModel reports whether a failure is the model's or its server's: what is wrong with the
// request would be so with every model.
func (f *failure) ofModel() bool {
	var own *ownError
	if errors.As(f.err, &own) { // the model was not asked
		return false
	}
	switch apiError(f.err).Class {
	case dragoman.ErrorBadRequest, dragoman.ErrorContextLength, dragoman.ErrorTooLarge, dragoman.ErrorPolicy:
		return false
	default:
		return true
	}
}

// failedOver tells which models failed before the one that answered, and why.
func (e *entry) failedOver() string {
	var all []string
	for _, f := range e.failures {
		if f.upstream != e.upstream {
			all = append(all, f.upstream+": "+bounded(f.err.Error()))
		}
	}
	return strings.Join(all, "; ")
}

// maxLogged bounds the texts of others in the log.
const maxLogged = 200

func bounded(s string) string {
	if len(s) > maxLogged {
		return s[:maxLogged] + "…"
	}
	return s
}

// log writes the line of an exchange.
func (e *entry) log(ctx context.Context, to *slog.Logger) {
	if to == nil {
		return
	}
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("id", e.id), slog.String("dialect", string(e.dialect)), slog.String("path", bounded(e.path)), slog.String("key", e.key),
		slog.String("model", bounded(e.model)), slog.String("route", e.route), slog.String("upstream", e.upstream),
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
	if e.left {
		attrs = append(attrs, slog.Bool("client_left", true))
	}
	if e.err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", bounded(e.err.Error())))
	}
	to.LogAttrs(ctx, level, "request", attrs...)
}
