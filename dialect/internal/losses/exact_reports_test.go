package losses_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// Every loss is reported, and nothing else is reported as lost.
func TestR11_ReportsExactlyTheLosses(t *testing.T) {
	for _, tc := range []struct {
		name       string
		from, to   dragoman.Dialect
		body       string
		want, none string
	}{
		{
			"an exact duplicate of a tool", dialectname.Anthropic, dialectname.OpenAIChat,
			`{"model":"m","max_tokens":3,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"}}]}`,
			"dropped (info) /tools/1", "",
		},
		{
			"the model in a Bedrock body", dialectname.Bedrock, dialectname.OpenAIChat,
			`{"modelId":"m","messages":[{"role":"user","content":[{"text":"hi"}]}],"guardrailConfig":{"a":1}}`,
			"/guardrailConfig", "/modelId",
		},
	} {
		req, read, err := crosstest.CodecOf(tc.from).DecodeRequest([]byte(tc.body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		enc, err := crosstest.CodecOf(tc.to).EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all := read.String() + enc.Report.String()
		if !strings.Contains(all, tc.want) || tc.none != "" && strings.Contains(all, tc.none) {
			t.Errorf("%s: the report is\n%s", tc.name, all)
		}
	}
}

func TestConversationOfAnotherAPIIsSeriousLoss(t *testing.T) {
	_, rep, err := crosstest.CodecOf(dialectname.Anthropic).DecodeRequest([]byte(`{"model":"m","max_tokens":3,"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`), dialect.DecodeOptions{})
	if err != nil || !strings.Contains(rep.String(), "dropped (serious) /contents") {
		t.Errorf("%v: %s", err, rep)
	}
}
