package tool_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

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

// A limit on tokens makes pages shorter. They are never cut in the middle and stored again: the
// model would not reach the end of the output.
func TestT8_PagesRespectALimitOnTokens(t *testing.T) {
	long := strings.Repeat("zwölf ", 500) + strings.Repeat("漢字", 500)
	for name, count := range map[string]func(string) int{
		"by length": nil, "characters": utf8.RuneCountInString, "more than characters": func(s string) int { return 100 * len(s) },
		"only at the end": func(s string) int { return strings.Count(s, "漢") },
	} {
		store := &tool.MemorySpill{}
		box := mustBox(t, returnTool(long, trusted), tool.ReadOutput(store))
		r := (&tool.Runner{Spill: store, Count: count, Limits: tool.Limits{Tokens: 100}}).Start("run")
		turn := 0
		answer := func(c *dragoman.ToolCall) string {
			turn++
			b, err := r.Do(t.Context(), box, tool.Turn{Number: turn, Calls: []*dragoman.ToolCall{c}})
			if err != nil {
				t.Fatal(err)
			}
			return b.Results[0].Text()
		}
		_, stored, _ := strings.Cut(answer(call("1", "f", "")), `name "`)
		stored, _, _ = strings.Cut(stored, `"`)
		var whole strings.Builder
		for whole.Len() < len(long) && turn < 5000 {
			head, page, _ := strings.Cut(withoutFence(t, answer(call("1", toolname.ReadOutput, fmt.Sprintf(`{"name":%q,"offset":%d}`, stored, whole.Len())))), "]\n")
			tokens := (len(page) + 3) / 4
			if count != nil {
				tokens = count(page)
			}
			if page == "" || tokens > 100 && len(page) > utf8.UTFMax || strings.Contains(head, "continue with offset") != (whole.Len()+len(page) < len(long)) {
				t.Fatalf("%s: %d tokens after %d bytes: %s", name, tokens, whole.Len(), head)
			}
			whole.WriteString(page)
		}
		if whole.String() != long {
			t.Errorf("%s: %d of %d bytes in %d pages", name, whole.Len(), len(long), turn)
		}
	}
}
