package tool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

func TestPinsJSONIsIndependentOfOrder(t *testing.T) {
	a, b := echo("a", tool.ReadOnly()), echo("b", tool.InNamespace("ns", "A <namespace>."))
	one, err := json.MarshalIndent(mustBox(t, a, b).Pins(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	two, err := json.MarshalIndent(mustBox(t, b, a).Pins(), "", "  ")
	if err != nil || string(one) != string(two) {
		t.Errorf("%v\n%s\n%s", err, one, two)
	}
	var back tool.Pins
	if err := json.Unmarshal(one, &back); err != nil {
		t.Fatal(err)
	}
	if changes := back.Check(mustBox(t, a, b)); changes != nil {
		t.Errorf("unchanged tools differ: %v", changes)
	}
	got := fmt.Sprint(back.Check(mustBox(t, echo("a"), echo("c"))))
	if want := "[a changed since it was pinned: annotations c is not pinned ns.b is pinned, but not in the toolbox]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUnreadablePinsAreRefused(t *testing.T) {
	for doc, want := range map[string]string{
		`{"version":2,"tools":[]}`:                  "version 2",
		`{}`:                                        "version 0",
		`{"version":1,"tool":[]}`:                   "unknown field",
		`{"version":1,"tools":[{"tool":"a"}]}`:      "the definition of \"a\" is missing",
		`{"version":1,"tools":[{"definition":{}}]}`: "tools[0].tool is missing",
		`{"version":1,"tools":[{"tool":"a","definition":{}},{"tool":"a","definition":{}}]}`: "twice",
	} {
		var p tool.Pins
		if err := json.Unmarshal([]byte(doc), &p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", doc, err, want)
		}
	}
	if err := (&tool.Pins{}).Accept(mustBox(t, echo("a")), "b"); err == nil {
		t.Error("a tool that is not there was pinned")
	}
}

// Accepting one tool must not accept what changed in the others.
func TestAcceptingOneToolLeavesTheOthers(t *testing.T) {
	pins := mustBox(t, echo("a"), echo("b")).Pins()
	changed := mustBox(t, echo("a", tool.ReadOnly()), echo("b", tool.ReadOnly()), echo("c"))
	if err := pins.Accept(changed, "a"); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(pins.Check(changed)), "[b changed since it was pinned: annotations c is not pinned]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The tools of an agent differ from run to run. They need no pins.
func TestToolsThatAnAgentAddsAreNotPinned(t *testing.T) {
	source := func(s string) tool.Option { return tool.Set(func(set *tool.Settings) { set.Source = s }) }
	added := []tool.Tool{echo("handoff", source(codes.FromHandoff)), echo("search", source(codes.FromAgent)), tool.ReadOutput(&tool.MemorySpill{})}
	box := mustBox(t, append(added, echo("own"), echo("remote", source(codes.FromMCP)))...)
	if got, want := fmt.Sprint((&tool.Pins{}).Check(box)), "[own is not pinned remote is not pinned]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	raw, err := json.Marshal(box.Pins())
	if err != nil || strings.Count(string(raw), `"tool":`) != 2 {
		t.Errorf("%v: %s", err, raw)
	}
}
