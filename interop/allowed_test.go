package interop_test

import (
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/interop"
)

func TestQuirkE2_ForbiddenCallsDoNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		allowed []dragoman.ToolRef
		forbids bool
	}{
		"all":         {nil, false},
		"none":        {[]dragoman.ToolRef{}, true},
		"this one":    {[]dragoman.ToolRef{{Name: "g"}, {Name: "f"}}, false},
		"another":     {[]dragoman.ToolRef{{Name: "g"}}, true},
		"a namesake":  {[]dragoman.ToolRef{{Namespace: "fs", Name: "f"}}, true},
		"nothing now": {nil, false},
	} {
		r := all.Registry(interop.Options{})
		r.AllowOnly([]dragoman.ToolRef{}) // a call of an earlier request
		r.AllowOnly(c.allowed)
		for _, reg := range []*interop.Registry{r, r.ForResponse()} {
			call := &dragoman.ToolCall{Name: "f"}
			if got := reg.Forbid(call); got != c.forbids || (call.Problem != nil) != c.forbids {
				t.Errorf("%s: %v, %v", name, got, call.Problem)
			}
			if c.forbids && call.Problem.Code != codes.ProblemStopped {
				t.Errorf("%s: %v", name, call.Problem)
			}
		}
	}
	r := all.Registry(interop.Options{})
	r.AllowOnly([]dragoman.ToolRef{})
	known := &dragoman.CallProblem{Code: codes.ProblemInvalidJSON}
	if call := (&dragoman.ToolCall{Problem: known}); !r.Forbid(call) || call.Problem != known {
		t.Errorf("a problem gave way to %v", call.Problem)
	}
}
