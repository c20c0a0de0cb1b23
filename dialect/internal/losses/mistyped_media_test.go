package losses_test

import (
	"bytes"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// mistypedBlocks lists blocks whose content does not match their type. Each holds the word "mark".
var mistypedBlocks = map[dragoman.Dialect][]string{
	dialectname.Anthropic: {
		`{"type":"image","source":"mark"}`,
		`{"type":"image","source":{"type":"base64","media_type":"image/mark"}}`,
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":7,"x":"mark"}}`,
		`{"type":"image","mark":true}`,
		`{"type":"image","source":{"type":"base64","media_type":"image/png","url":"mark"}}`,
		`{"type":"image","source":{"type":"url","url":"https://x/y.png","data":"mark"}}`,
		`{"type":"document","source":["mark"]}`,
		`{"type":"document","source":{"type":"url","url":["mark"]}}`,
	},
	dialectname.Bedrock: {
		`{"image":"mark"}`,
		`{"image":{"format":"mark"}}`,
		`{"image":{"format":"png","source":"mark"}}`,
		`{"image":{"format":"png","source":{"bytes":7,"mark":1}}}`,
		`{"document":{"format":"pdf","name":"mark"}}`,
		`{"video":["mark"]}`,
	},
}

// requestWith returns a request with a block in the given place, and the pointer
// to the block in the canonical form.
func requestWith(d dragoman.Dialect, place, block string) (body, at string) {
	if d == dialectname.Bedrock {
		switch place {
		case "system":
			return `{"system":[{"text":"be kind"},` + block + `],"messages":[{"role":"user","content":[{"text":"hi"}]}]}`, "/instructions/1"
		case "result":
			return `{"messages":[{"role":"user","content":[{"text":"hi"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"f","input":{}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[{"text":"x"},` + block + `]}}]}]}`, "/messages/2/parts/0/content/1"
		}
		return `{"messages":[{"role":"user","content":[{"text":"hi"},` + block + `]}]}`, "/messages/0/parts/1"
	}
	const head = `{"model":"m","max_tokens":9,`
	switch place {
	case "system":
		return head + `"system":[{"type":"text","text":"be kind"},` + block + `],"messages":[{"role":"user","content":"hi"}]}`, "/instructions/1"
	case "result":
		return head + `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"x"},` + block + `]}]}]}`, "/messages/2/parts/0/content/1"
	}
	return head + `"messages":[{"role":"user","content":[{"type":"text","text":"hi"},` + block + `]}]}`, "/messages/0/parts/1"
}

func TestR11_MistypedBlockSurvivesInItsDialectOrIsReported(t *testing.T) {
	for d, blocks := range mistypedBlocks {
		for _, place := range []string{"message", "system", "result"} {
			if place == "system" && d == dialectname.Anthropic {
				blocks = append(blocks, `{"type":"search_result","mark":1}`)
			}
			for _, block := range blocks {
				body, at := requestWith(d, place, block)
				req, _, err := crosstest.CodecOf(d).DecodeRequest([]byte(body), dialect.DecodeOptions{NoNative: true})
				if err != nil {
					t.Errorf("%s, %s in a %s: %v", d, block, place, err)
					continue
				}
				req.Model = "m"
				for _, c := range crosstest.Codecs {
					enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
					if err != nil {
						t.Errorf("%s, %s in a %s, to %s: %v", d, block, place, c.Dialect(), err)
						continue
					}
					kept := bytes.Contains(enc.Body, []byte("mark"))
					if c.Dialect() == d && (!kept || strings.Contains(enc.Report.String(), at)) {
						t.Errorf("%s, %s in a %s is lost: %s\n%s", d, block, place, enc.Body, enc.Report)
					}
					if c.Dialect() != d && !reportedAt(enc.Report, at) {
						t.Errorf("%s, %s in a %s, to %s: no loss reported at %s: %s\n%s", d, block, place, c.Dialect(), at, enc.Body, enc.Report)
					}
				}
			}
		}
	}
}

// reportedAt reports whether rep has a loss at a pointer or below it.
func reportedAt(rep dragoman.Report, at string) bool {
	for _, l := range rep.Losses {
		if l.Severity >= dragoman.Warn && (l.Path == at || strings.HasPrefix(l.Path, at+"/")) {
			return true
		}
	}
	return false
}
