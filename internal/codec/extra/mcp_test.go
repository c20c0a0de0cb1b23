package extra

import (
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
)

func TestMetadataOfToolServersIsNoLoss(t *testing.T) {
	for d, want := range map[dragoman.Dialect]int{MCP: 0, "gemini.generate_content": 1} {
		rep := &dragoman.Report{}
		Report(rep, &dragoman.Extra{Dialect: d, Fields: []dragoman.Field{{Path: "/annotations", Value: []byte(`{"audience":["user"]}`)}}}, "anthropic.messages", At("/parts/0"))
		if len(rep.Losses) != want {
			t.Errorf("%s: %+v", d, rep.Losses)
		}
	}
}
