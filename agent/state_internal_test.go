package agent

import (
	"encoding/json"
	"reflect"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// fullState returns a state with a value in each field.
func fullState(t *testing.T) state {
	t.Helper()
	call := &dragoman.ToolCall{ID: "c", Name: "pay", Arguments: `{"a":"<&>"}`}
	ledger := &policy.Ledger{}
	if err := ledger.Decide(tool.Binding{Run: "r", CallID: "c"}, tool.Answer{Verdict: tool.Approved}); err != nil {
		t.Fatal(err)
	}
	s := state{
		V: stateVersion, Run: "r\xff<", Agent: "a", Turn: 3, Phase: calling,
		Usage: dragoman.Usage{Input: dragoman.Counted(7)}, Cost: 0.1, Calls: 2, Elapsed: 5,
		Found: []tool.Key{tool.KeyOfCall(call)}, Chosen: true, Paused: true, Corrected: 1, Recent: []string{"x", "\"y\n"}, Failures: 1,
		Seen: []dragoman.Message{dragoman.UserText("u")}, Offset: 4, Waiting: []string{"w"}, Background: true,
		Partial: "p", Output: "o", Failed: &failedRun{Text: "f"},
		Stopped: &storedStop{Name: "g", Stage: stageToolOutput, Reason: "r", Error: "e"},
		Pending: []tool.Pending{{Binding: tool.Binding{Run: "r", Turn: 3, CallID: "c"}}},
		Settled: []*dragoman.ToolResult{call.ResultText("done")},
		Done:    []doneCall{{Record: tool.Record{Tool: "pay", CallID: "c"}, Plain: "p"}},
		Records: []*storedRecord{{record: &tool.Record{Tool: "pay", CallID: "c"}}}, Recorded: 1,
		Degraded: []degradedTool{{"a", tool.KeyOfCall(call)}},
		Ledger:   ledger, Messages: []dragoman.Message{dragoman.UserText("m")}, Begun: 1,
	}
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Fatalf("%s is not filled here: fill it, and see that encode writes it", v.Type().Field(i).Name)
		}
	}
	return s
}

func TestStateMatchesEncodingJSON(t *testing.T) {
	for name, s := range map[string]state{"full": fullState(t), "zero": {}, "nothing decided": {Ledger: &policy.Ledger{}}} {
		got, err := s.encode()
		if err != nil {
			t.Fatal(name, err)
		}
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(name, err)
		}
		var a, b any
		if err := json.Unmarshal(got, &a); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, got)
		}
		if err := json.Unmarshal(want, &b); err != nil {
			t.Fatal(name, err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestFieldOrderOfArgumentsIsIgnored(t *testing.T) {
	same := func(raw string) string { return string(sameArguments(nil, []byte(raw))) }
	for _, c := range [][2]string{
		{`{"b":{"d":1,"c":[1, 2]},"a":"x, y"}`, ` { "a" : "x, y" , "b":{"c":[1, 2] ,"d":1}}`},
		{`{"a":1,"b":3}`, `{"b":2,"a":1,"b":3}`},
	} {
		if same(c[0]) != same(c[1]) {
			t.Errorf("%s and %s: %s, %s", c[0], c[1], same(c[0]), same(c[1]))
		}
	}
	for _, c := range [][2]string{{`{"a":1, "b":2}`, `{"a":2, "b":1}`}, {`{"a":"x, y"}`, `{"a":"x,y"}`}, {`[1, 2]`, `[2, 1]`}, {`{"a": `, `{"a":`}} {
		if same(c[0]) == same(c[1]) {
			t.Errorf("%s and %s are both %s", c[0], c[1], same(c[0]))
		}
	}
}

func TestRecordsAreInOrderOfCalls(t *testing.T) {
	calls := []*dragoman.ToolCall{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	of := func(ids ...string) (out []tool.Record) {
		for _, id := range ids {
			out = append(out, tool.Record{CallID: id})
		}
		return out
	}
	waits := of("a", "b")
	waits[1].Pending = true
	for _, c := range []struct {
		records []tool.Record
		want    bool
	}{
		{nil, true},
		{of("a", "b", "c"), true},
		{of("a", "c"), true},
		{of("c"), true},
		{of("b", "a"), false},
		{of("a", "a"), false},
		{of("d"), false},
		{waits, false},
	} {
		if got := ordered(c.records, calls); got != c.want {
			t.Errorf("%v: %v", c.records, got)
		}
	}
}
