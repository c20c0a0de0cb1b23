package strictupstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/oracle/rulecheck"
)

// Judge returns why the vendor would refuse a request to a model; nil if it would accept
// it. Where several rules are broken it returns the first: unknown fields, then parameters,
// then the conversation. It knows nothing of earlier requests.
func Judge(d dragoman.Dialect, model string, header http.Header, body []byte) *Refusal {
	name, _, _ := strings.Cut(model, "?")
	j := &judge{dialect: d, model: name, header: header}
	req, err := object(body)
	if err != nil {
		return j.bad("", "", "%v", err)
	}
	v := vendorOf(d)
	r := v.fields(j, req)
	if r == nil {
		r = v.media(j, req)
	}
	if r == nil {
		r = j.conversation(req, body)
	}
	return r
}

type judge struct {
	dialect dragoman.Dialect
	model   string
	header  http.Header
}

func (j *judge) bad(code, param, format string, args ...any) *Refusal {
	return &Refusal{Dialect: j.dialect, Model: j.model, Status: http.StatusBadRequest, Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
}

// conversation applies the structural rules. Signatures are checked elsewhere: vendors want
// them in the current turn only.
func (j *judge) conversation(req map[string]any, body []byte) *Refusal {
	v := vendorOf(j.dialect)
	body, later := v.conversation(req, body)
	if later {
		return nil
	}
	for _, broken := range rulecheck.Request(j.dialect, body, rulecheck.Options{NoSignatures: true, MidSystem: true}) {
		if !v.accepts(broken.Rule) {
			return j.bad("invalid_value", "", "%s", broken)
		}
	}
	return nil
}

// number reads a number, and reports whether there is one.
func number(m map[string]any, key string) (float64, bool) {
	n, ok := m[key].(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}
