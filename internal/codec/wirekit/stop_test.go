package wirekit_test

import (
	"net/http"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

func TestQuirkB18_StopBlocksCalls(t *testing.T) {
	const none, cut, stopped = "", codes.ProblemTruncated, codes.ProblemStopped
	for _, c := range []struct {
		word     dragoman.StopReason
		terminal bool
		want     dragoman.StopReason
		codes    [2]string
	}{
		{dragoman.StopEnd, true, dragoman.StopToolCalls, [2]string{none, none}},
		{dragoman.StopToolCalls, true, dragoman.StopToolCalls, [2]string{none, none}},
		{dragoman.StopLength, true, dragoman.StopLength, [2]string{stopped, cut}},
		{dragoman.StopContentFilter, true, dragoman.StopContentFilter, [2]string{stopped, stopped}},
		{dragoman.StopUnknown, true, dragoman.StopUnknown, [2]string{stopped, stopped}},
	} {
		calls := []*dragoman.ToolCall{{ID: "a"}, {ID: "b"}}
		if got := wirekit.SettleStop(all.Registry(interop.Options{}), c.word, c.terminal, calls); got != c.want {
			t.Errorf("%s: the stop is %s, want %s", c.word, got, c.want)
		}
		for i, call := range calls {
			code := none
			if call.Problem != nil {
				code = call.Problem.Code
			}
			if code != c.codes[i] {
				t.Errorf("%s: call %d has problem %q, want %q", c.word, i, code, c.codes[i])
			}
		}
	}
	known := &dragoman.CallProblem{Code: codes.ProblemNoName}
	calls := []*dragoman.ToolCall{{Problem: known}}
	if wirekit.SettleStop(all.Registry(interop.Options{}), dragoman.StopLength, true, calls); calls[0].Problem != known {
		t.Errorf("the problem was replaced by %+v", calls[0].Problem)
	}
}

func TestErrorBodyIsKeptOnlyIfUnderstood(t *testing.T) {
	read := func(r *jsonwire.Reader, e *dragoman.APIError) {
		if r.Kind() != '{' {
			return
		}
		for key := range r.Object() {
			if string(key) == "message" {
				e.Message = wirekit.Text(r, "")
			} else {
				r.Skip()
			}
		}
	}
	for _, c := range []struct {
		body, message string
		native        bool
	}{
		{`{"message":"no"}`, "no", true},
		{`{"message":7}`, "7", true},
		{`{"message":"no"} and more`, "no", false},
		{`{"message":"no"`, `{"message":"no"`, false},
		{`{"other":1}`, `{"other":1}`, false},
		{`<html>`, `<html>`, false},
		{``, "Bad Gateway", false},
	} {
		header := http.Header{"X-Id": {"r1"}, "Retry-After": {"2"}}
		e := wirekit.ErrorResponse{Status: 502, Header: header, Body: []byte(c.body)}.Decode("x-id", "f", read)
		if e.Message != c.message || (e.Native != nil) != c.native || e.RequestID != "r1" || e.RetryAfter == 0 || e.Status != 502 {
			t.Errorf("%s: %+v", c.body, e)
		}
	}
}
