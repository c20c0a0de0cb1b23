package tool_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/tool"
)

// Every run of an agent has this tool, so creating it must be cheap.
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
		for _, reader := range []tool.Tool{tool.ReadOutput(&store), tool.ReadOutput(&store, tool.Describe(func(s *dragoman.ToolSpec) { s.Name = "pages" }))} {
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

func TestT8_PagesAreCompleteIfTheModelStartsInsideACharacter(t *testing.T) {
	next := regexp.MustCompile(`^\[bytes (\d+) to (\d+) of \d+(?:; continue with offset (\d+))?\]\n`)
	for _, content := range []string{"éabcdefgh", "abc日本日本日本x", "日日日日日日", "a😀😀bcdefg"} {
		var store tool.MemorySpill
		name, err := store.Put(t.Context(), tool.CallRef{Run: "run", Turn: 1, CallID: "c"}, 0, content)
		if err != nil {
			t.Fatal(err)
		}
		box, err := tool.NewBox(tool.ReadOutput(&store))
		if err != nil {
			t.Fatal(err)
		}
		for first := range content + " " {
			for within := range 4 {
				first, offset, read := -1, min(first+within, len(content)), ""
				for more := true; more; {
					_, rec := do(t, &tool.Runner{}, box, call("c", toolname.ReadOutput, fmt.Sprintf(`{"name":%q,"offset":%d,"bytes":4}`, name, offset)))
					m := next.FindStringSubmatch(rec.Plain)
					if m == nil {
						t.Fatalf("%q: %+v", content, rec)
					}
					if first < 0 {
						first, _ = strconv.Atoi(m[1])
					}
					read += rec.Plain[len(m[0]):]
					more = m[3] != ""
					offset, _ = strconv.Atoi(m[3])
				}
				if first > len(content) || read != content[first:] {
					t.Errorf("%q from %d: pages are %q", content, first, read)
				}
			}
		}
	}
}
