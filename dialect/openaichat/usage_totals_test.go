package openaichat

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

func TestUnknownTotalIsReported(t *testing.T) {
	for name, tc := range map[string]struct {
		usage dragoman.Usage
		line  bool
	}{
		"both known": {dragoman.Usage{Input: dragoman.Counted(1), Output: dragoman.Counted(2)}, false},
		"one known":  {dragoman.Usage{Input: dragoman.Counted(1)}, true},
	} {
		resp := &dragoman.Response{ID: "r", Model: "m", Output: []dragoman.Message{dragoman.AssistantText("hi")}, Usage: tc.usage, Stop: dragoman.Stop{Reason: dragoman.StopEnd}}
		enc, err := Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(enc.Report.String(), "/usage"); got != tc.line || !strings.Contains(string(enc.Body), `"completion_tokens":`) {
			t.Errorf("%s: %s\n%s", name, enc.Body, enc.Report)
		}
	}
}
