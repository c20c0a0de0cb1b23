package wirekit_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/targets"
)

func TestDuplicateUnknownFieldIsWrittenOnce(t *testing.T) {
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `"x%d":1,`, i)
	}
	for c, rest := range map[dialect.Codec]string{
		anthropic.Codec{}:       `"x99":2,"max_tokens":5,"messages":[{"role":"user","content":"a"}]}`,
		openaichat.Codec{}:      `"x99":2,"messages":[{"role":"user","content":"a"}]}`,
		openairesponses.Codec{}: `"x99":2,"input":"a"}`,
	} {
		req, _, err := c.DecodeRequest([]byte(`{"model":"m",`+many.String()+rest), dialect.DecodeOptions{NoNative: true})
		if err != nil {
			t.Fatal(err)
		}
		enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := jsonwire.Check(enc.Body); err != nil || !strings.Contains(string(enc.Body), `"x99":2`) {
			t.Errorf("%s: %v\n%s", c.Dialect(), err, enc.Body)
		}
	}
}

func TestQuirkE4_ForcedChoiceRefused(t *testing.T) {
	thinking := &dragoman.ReasoningSettings{Effort: "high"}
	for _, c := range []struct {
		mode      string
		reasoning *dragoman.ReasoningSettings
		takes     string
		want      bool
	}{
		{dragoman.ChoiceRequired, thinking, codes.ForcedAlways, false},
		{dragoman.ChoiceRequired, nil, codes.ForcedNever, true},
		{dragoman.ChoiceTool, nil, codes.ForcedNever, true},
		{dragoman.ChoiceAuto, thinking, codes.ForcedNever, false},
		{dragoman.ChoiceTool, thinking, codes.ForcedWithoutThinking, true},
		{dragoman.ChoiceTool, nil, codes.ForcedWithoutThinking, false},
		{dragoman.ChoiceTool, &dragoman.ReasoningSettings{Effort: "none"}, codes.ForcedWithoutThinking, false},
		{dragoman.ChoiceTool, &dragoman.ReasoningSettings{Mode: codes.ReasoningOff}, codes.ForcedWithoutThinking, false},
	} {
		req := &dragoman.Request{ToolChoice: &dragoman.ToolChoice{Mode: c.mode}, Reasoning: c.reasoning}
		if got := wirekit.RefusesForced(req, targets.Capabilities{ForcedChoice: c.takes}); got != c.want {
			t.Errorf("%s with %+v, taken %q: refused %v, want %v", c.mode, c.reasoning, c.takes, got, c.want)
		}
	}
	if wirekit.RefusesForced(&dragoman.Request{}, targets.Capabilities{ForcedChoice: codes.ForcedNever}) {
		t.Error("a request without a choice forces nothing")
	}
}
