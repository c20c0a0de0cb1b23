package tool_test

import (
	"fmt"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
)

// BenchmarkLookup looks up one of many tools, which must not scan the list.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{10, 1000} {
		tools := make([]tool.Tool, n)
		for i := range tools {
			tools[i] = echo(fmt.Sprint("tool_", i))
		}
		box := mustBox(b, tools...)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k := toolopt.Bare(fmt.Sprint("tool_", n-1))
			for b.Loop() {
				if _, ok := box.Find(k); !ok {
					b.Fatal("lost")
				}
			}
		})
	}
}
