package access

import (
	"net/http"
	"strings"

	"github.com/dragoman-go/dragoman/internal/dialects"
)

// azureKey is the header of a server that has no dialect of its own.
const azureKey = "Api-Key"

// FromRequest is the key that a client presents, or nothing. Clients put it where
// their own provider wants it. Where there are several, the first of these that is
// not empty is taken, whatever the others say, so that a request has one owner:
//
//   - Authorization: Bearer …
//   - the key headers of the dialects, such as x-api-key
//   - api-key, of Azure
//   - the key parameters of the dialects, such as ?key=…
//
// Only [Keys.Admit] and [Keys.Identify] should see it. A URL with such a parameter must
// not be logged as it is.
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
		if !strings.Contains(r.URL.RawQuery, name+"=") { // most have none
			continue
		}
		if key := strings.TrimSpace(r.URL.Query().Get(name)); key != "" {
			return key
		}
	}
	return ""
}
