package losses_test

import (
	"slices"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/internal/dialects"
)

// The model would have read the documents, so a strict provider refuses the request.
func TestR11_DocumentsThatATargetDoesNotGetAreASeriousLoss(t *testing.T) {
	const body = `{"model":"command-a-03-2025","messages":[{"role":"user","content":"What color is the sky?"}],"documents":[{"id":"1","data":{"text":"The sky is green."}}]}`
	req, _, err := cohere.Codec{}.DecodeRequest([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range dialects.All() {
		out, err := c.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		serious := slices.ContainsFunc(out.Report.Losses, func(l dragoman.Loss) bool { return l.Path == "/documents" && l.Severity == dragoman.Serious })
		if own := c.Dialect() == (cohere.Codec{}).Dialect(); serious == own {
			t.Errorf("%s: %v", c.Dialect(), out.Report)
		}
	}
}
