package main

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/rulecheck"
	"github.com/dragoman-go/dragoman/internal/serving/sniff"
	"github.com/dragoman-go/dragoman/internal/testkit"
)

// Every recorded client request converts to a request that each target accepts, or is
// refused for an error of its own.
func TestRecordedRequestsBecomeValidForEveryTarget(t *testing.T) {
	step := 7
	if os.Getenv("DRAGOMAN_LONG") != "" {
		step = 1
	}
	for file, from := range map[string]dragoman.Dialect{
		"openai_chat": dialectname.OpenAIChat, "openai_responses": dialectname.OpenAIResponses, "anthropic_messages": dialectname.Anthropic,
		"gemini_generateContent": dialectname.Gemini, "ollama_chat": dialectname.Ollama, "bedrock_converse": dialectname.Bedrock,
	} {
		t.Run(file, func(t *testing.T) {
			xs := testkit.Recordings(t, file)
			converted, refused := 0, 0
			for i := 0; i < len(xs); i += step {
				body, ok := xs[i].Request()
				if !ok || xs[i].Status >= 400 {
					continue
				}
				asks := asksSomething(dialectOf(from), body)
				for _, to := range allDialects() {
					c := conversion{to: to, model: "m", abandon: true}
					var out bytes.Buffer
					err := c.run(bytes.NewReader(body), &out, sniff.Request, from)
					if err != nil {
						refused++
						if !expected(err) {
							t.Errorf("%s to %s: %v", xs[i].ID(), to.Dialect(), err)
						}
						continue
					}
					converted++
					if to.Dialect() == from || !asks {
						continue // a client may break rules that its server does not enforce
					}
					for _, v := range rulecheck.Request(to.Dialect(), out.Bytes(), rulecheck.Options{}) {
						t.Errorf("%s to %s: %v\n%.2000s", xs[i].ID(), to.Dialect(), v, out.Bytes())
					}
				}
			}
			t.Logf("%d converted, %d refused", converted, refused)
		})
	}
}

// asksSomething reports whether a request has a conversation. Some recorded requests have
// none.
func asksSomething(l namedDialect, body []byte) bool {
	req, _, err := l.DecodeRequest(body, dialect.DecodeOptions{})
	return err == nil && slices.ContainsFunc(req.Messages, func(m dragoman.Message) bool {
		return len(m.Parts) > 0 && m.Role != dragoman.RoleSystem && m.Role != dragoman.RoleDeveloper && m.Parts[0].Kind() != codes.KindOpaque
	})
}

// expected reports whether the request itself is the reason for a refusal.
func expected(err error) bool {
	return errors.Is(err, dragoman.ErrUnsupported) || errors.Is(err, dragoman.ErrInvalid) ||
		strings.Contains(err.Error(), "not valid JSON")
}
