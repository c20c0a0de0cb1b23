package tool_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/tool"
)

// Every run of an agent has this tool.
func TestT8_ReadOutputIsCheap(t *testing.T) {
	var store tool.MemorySpill
	if got := testing.AllocsPerRun(50, func() {
		if _, err := tool.NewBox(tool.ReadOutput(&store)); err != nil {
			t.Fatal(err)
		}
	}); got > 60 {
		t.Errorf("a toolbox with it takes %.0f allocations", got)
	}
}

func TestT8_ReadersOfDifferentStoresDoNotMix(t *testing.T) {
	ref := tool.CallRef{Run: "run", Turn: 1, CallID: "c"}
	for _, content := range []string{"one", "two"} {
		var store tool.MemorySpill
		name, err := store.Put(t.Context(), ref, 0, content)
		if err != nil {
			t.Fatal(err)
		}
		for _, reader := range []tool.Tool{tool.ReadOutput(&store), tool.ReadOutputAs("pages", &store)} {
			box, err := tool.NewBox(reader)
			if err != nil {
				t.Fatal(err)
			}
			runner := &tool.Runner{}
			if _, rec := do(t, runner, box, call("c", reader.Spec().Name, `{"name":"`+name+`"}`)); rec.Plain != "[bytes 0 to 3 of 3]\n"+content {
				t.Errorf("%s: %+v", reader.Spec().Name, rec)
			}
			if _, rec := do(t, runner, box, call("d", reader.Spec().Name, `{"offset":-1}`)); rec.ErrorKind != tool.ErrorArguments {
				t.Errorf("%s: %+v", reader.Spec().Name, rec)
			}
		}
	}
}
