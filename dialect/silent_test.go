package dialect_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// Things that once were lost without a line.

// lossesAt returns the losses at a pointer or below it.
func lossesAt(rep dragoman.Report, path string) (at []dragoman.Loss) {
	for _, l := range rep.Losses {
		if l.Path == path || strings.HasPrefix(l.Path, path+"/") {
			at = append(at, l)
		}
	}
	return at
}

// A choice that narrows the tools to one, by a reference that says more or less
// than the API asks for.
func TestR11_AReferenceThatNamesAToolIsOneToThatToolWhateverStandsBesideTheName(t *testing.T) {
	const (
		responses = `{"model":"m","input":"q","tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"function","name":"g","parameters":{"type":"object"}}],
			"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[REF]}}`
		chat = `{"model":"m","messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"type":"function","function":{"name":"g","parameters":{"type":"object"}}}],
			"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[REF]}}}`
		forced = `{"model":"m","messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":REF}`
	)
	for _, c := range []struct {
		from      dragoman.Dialect
		body, ref string
		lost      string // below the reference
	}{
		{dragoman.OpenAIResponses, responses, `{"type":"function","name":"f","zz":1}`, "/zz"},
		{dragoman.OpenAIResponses, responses, `{"name":"f"}`, ""},
		{dragoman.OpenAIChat, chat, `{"type":"function","function":{"name":"f"},"zz":1}`, "/zz"},
		{dragoman.OpenAIChat, chat, `{"type":"function","function":{"name":"f","zz":1}}`, "/function/zz"},
		{dragoman.OpenAIChat, forced, `{"type":"function","function":{"name":"f","zz":1}}`, "/function/zz"},
	} {
		req, _, err := codecOf(c.from).DecodeRequest([]byte(strings.Replace(c.body, "REF", c.ref, 1)), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range codecs {
			enc, err := to.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
			if err != nil {
				t.Errorf("%s to %s: %v", c.ref, to.Dialect(), err)
				continue
			}
			own := to.Dialect() == c.from
			if own && !strings.Contains(string(enc.Body), `"zz":1`) && c.lost != "" {
				t.Errorf("%s to its own dialect: %s", c.ref, enc.Body)
			}
			if lines := lossesAt(enc.Report, "/tool_choice/tools/0"+c.lost); !own && c.lost != "" && len(lines) != 1 || own && len(lines) > 0 {
				t.Errorf("%s to %s: %v", c.ref, to.Dialect(), enc.Report)
			}
			again, _, err := to.DecodeRequest(enc.Body, dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			named := again.ToolChoice != nil && len(again.ToolChoice.Tools) == 1 && again.ToolChoice.Tools[0].Name == "f"
			alone := len(again.Tools) == 1 && again.Tools[0].Name == "f"
			if !named && !alone {
				t.Errorf("%s to %s: %s", c.ref, to.Dialect(), enc.Body)
			}
		}
	}
}
