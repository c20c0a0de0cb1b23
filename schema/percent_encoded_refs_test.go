package schema

import (
	"strings"
	"testing"
)

// Strict targets compare references byte by byte, and so does Check.
func TestQuirkA4_PercentEncodedReferenceIsInlinedForStrict(t *testing.T) {
	for _, ref := range []string{`"$ref"`, `"$recursiveRef"`, `"$dynamicRef"`} {
		src := `{"type":"object","properties":{"a":{` + ref + `:"#/%24defs/A"}},"required":["a"],"additionalProperties":false,"$defs":{"A":{"type":"string"}}}`
		for _, p := range []Profile{OpenAIStrict(), AzureStrict()} {
			out, _, err := lowered([]byte(src), p)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(out), `"$ref":"#/$defs/A"`) {
				t.Errorf("%s, %s: %s", p.Name(), ref, out)
			}
			if v := Check(out, p); len(v) > 0 {
				t.Errorf("%s, %s: %v", p.Name(), ref, v)
			}
		}
	}
}
