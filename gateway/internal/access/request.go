package access

import (
	"net/http"
	"strings"

	"github.com/dragoman-go/dragoman/internal/dialects"
)

// azureKey is the key header of Azure, which has no dialect of its own.
const azureKey = "Api-Key"

// FromRequest returns the key that a client presents, or "". Clients send it where their own
// provider expects it. The first of these places with a value counts, so that a request has one
// owner:
//
//   - Authorization: Bearer …
//   - the key headers of the dialects, such as x-api-key
//   - api-key, of Azure
//   - the key parameters of the dialects, such as ?key=…
//
// Pass the result only to methods of [Keys]. Do not log a URL with such a parameter.
func FromRequest(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if token = strings.TrimSpace(token); strings.EqualFold(scheme, "Bearer") && token != "" {
		return token
	}
	headers, parameters := dialects.Keys()
	for _, name := range headers {
		if key := strings.TrimSpace(r.Header.Get(name)); key != "" {
			return key
		}
	}
	if key := strings.TrimSpace(r.Header.Get(azureKey)); key != "" {
		return key
	}
	if r.URL == nil {
		return ""
	}
	for _, name := range parameters {
		if !strings.Contains(r.URL.RawQuery, name+"=") { // fast path
			continue
		}
		if key := strings.TrimSpace(r.URL.Query().Get(name)); key != "" {
			return key
		}
	}
	return ""
}
