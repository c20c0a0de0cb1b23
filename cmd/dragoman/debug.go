package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// wireLog shows what a provider logs, all of it, to who watches a run: the short
// values on the first line, and bodies, headers and losses on lines of their own,
// unescaped so that JSON can be read and copied.
type wireLog struct {
	t     *teller
	attrs []slog.Attr
}

// Enabled reports true: the wire is logged at debug level.
func (wireLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle shows one record.
func (l wireLog) Handle(_ context.Context, r slog.Record) error {
	var first, rest strings.Builder
	fmt.Fprintf(&first, "[%s]", r.Message)
	add := func(a slog.Attr) bool {
		v := a.Value.Resolve()
		switch lines, isList := v.Any().([]string); {
		case isList:
			for _, line := range lines {
				fmt.Fprintf(&rest, "\n  %s: %s", a.Key, line)
			}
		case len(v.String()) > 80 || strings.ContainsAny(v.String(), "{\n"):
			fmt.Fprintf(&rest, "\n  %s: %s", a.Key, strings.TrimSpace(v.String()))
		case v.String() != "":
			fmt.Fprintf(&first, " %s=%s", a.Key, v)
		}
		return true
	}
	for _, a := range l.attrs {
		add(a)
	}
	r.Attrs(add)
	l.t.notef("%s", shown(first.String()+rest.String())) // servers have their words in it
	return nil
}

// WithAttrs is the log with more to show.
func (l wireLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.attrs = append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)
	return l
}

// WithGroup is the same log: nobody groups here.
func (l wireLog) WithGroup(string) slog.Handler { return l }
