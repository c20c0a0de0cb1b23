package losses_test

import (
	"bytes"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// Only Responses has a summary beside the text of reasoning. Others write both as one text, or
// report that reasoning is lost.
func TestReasoningSummaryIsWrittenAfterItsText(t *testing.T) {
	const body = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[` +
		`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"the summary"}],"content":[{"type":"reasoning_text","text":"the text"}]},` +
		`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"yes","annotations":[]}]}]}`
	resp, _, err := openairesponses.Codec{}.DecodeResponse([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range crosstest.Codecs {
		enc, err := c.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			t.Fatalf("%s: %v", c.Dialect(), err)
		}
		out, lost := enc.Body, false
		for _, l := range enc.Report.Losses {
			lost = lost || l.Kind == dragoman.Dropped && l.Path == "/output/0/parts/0" && strings.Contains(l.Detail, "reasoning")
		}
		text, summary := bytes.Index(out, []byte("the text")), bytes.Index(out, []byte("the summary"))
		written := text >= 0 && summary >= 0 && (text < summary || c.Dialect() == resp.Origin.Dialect)
		if written == lost {
			t.Errorf("%s: lost %v: %s", c.Dialect(), lost, out)
		}
	}
}
