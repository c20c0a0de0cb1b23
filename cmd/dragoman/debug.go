package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// wireLog is a slog handler that prints the log of a provider in full, for --debug. Short
// values go on the first line. Bodies, headers and losses go on lines of their own, not
// escaped, so that JSON can be read and copied.
type wireLog struct {
	t     *printer
	attrs []slog.Attr
}

// Enabled returns true, because providers log requests and responses at debug level.
func (wireLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle prints one record.
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
	l.t.notef("%s", printable(first.String()+rest.String())) // the text may come from a server
	return nil
}

// WithAttrs returns a handler that adds attrs to each record.
func (l wireLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.attrs = append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)
	return l
}

// WithGroup returns l: providers do not use groups.
func (l wireLog) WithGroup(string) slog.Handler { return l }
