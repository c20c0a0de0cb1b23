package gateway

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
)

func TestG6_LossSummaryFitsAHeader(t *testing.T) {
	lost := func(severity dragoman.Severity, path string) dragoman.Loss {
		return dragoman.Loss{Kind: dragoman.Dropped, Severity: severity, Path: path}
	}
	for _, tc := range []struct {
		losses []dragoman.Loss
		want   string
	}{
		{nil, ""},
		{[]dragoman.Loss{lost(dragoman.Info, "/form")}, ""},
		{[]dragoman.Loss{lost(dragoman.Warn, "/a;b\r\nX: y"), lost(dragoman.Info, "/form"), lost(dragoman.Serious, "/c")}, "2; dropped /a_b__X: y; dropped /c"},
	} {
		if got := lossSummary(tc.losses); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	var many []dragoman.Loss
	for range 1000 {
		many = append(many, lost(dragoman.Warn, "/messages/0/parts/0"))
	}
	got := lossSummary(many)
	out := strings.Count(got, "dropped")
	if len(got) > maxSummary+50 || out < 10 || !strings.HasPrefix(got, "1000; ") || !strings.HasSuffix(got, "more") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
