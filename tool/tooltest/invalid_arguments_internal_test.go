package tooltest

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/dragoman-go/dragoman/tool"
)

func TestInvalidArgumentsAreDerivedFromTheFirstValidCase(t *testing.T) {
	const schema = `{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer","default":1},"any":{}},"required":["path","depth"],"additionalProperties":false}`
	list := func(context.Context, json.RawMessage) (any, error) { return nil, nil }
	c := newChecker(t.Context(), Suite{Tool: tool.Raw("list", "Lists.", json.RawMessage(schema), list), Cases: []Case{
		{Arguments: `{"path":7}`}, {Arguments: `{"path":"a","depth":2,"any":null}`},
	}})
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`[]`, `7`, `{}`,
		`{"any":null,"depth":{"tooltest":[]},"path":"a"}`, // a missing depth has a default, and any accepts anything
		`{"any":null,"depth":2}`,
		`{"any":null,"depth":2,"path":{"tooltest":[]}}`,
		`{"any":null,"depth":2,"path":"a","tooltest_unknown":"x"}`,
	}
	if got := c.invalidArguments(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	c.arguments()
	if len(c.found) > 0 {
		t.Error(c.found)
	}
}
