package tool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// An agent makes a toolbox for every run. All of them share the breaker of a tool.
func TestT16_ToolboxesShareTheBreakerOfATool(t *testing.T) {
	broken := tool.New("f", "Fails.", func(context.Context, struct{}) (string, error) { return "", errors.New("broken") },
		tool.Set(func(s *tool.Settings) { s.Breaker = tool.Breaker{Failures: 2, Pause: time.Hour} }))
	var kinds []tool.ErrorKind
	for i := range 3 {
		box, err := tool.NewBox(broken)
		if err != nil {
			t.Fatal(err)
		}
		b, err := (&tool.Runner{}).Start(fmt.Sprint("run ", i)).Do(t.Context(), box, tool.Turn{Calls: []*dragoman.ToolCall{{ID: "a", Name: "f"}}})
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, b.Records[0].ErrorKind)
	}
	if want := []tool.ErrorKind{tool.ErrorFailed, tool.ErrorFailed, tool.ErrorUnavailable}; !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}
}
