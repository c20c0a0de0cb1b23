package access

import (
	"net/http"
	"strings"
)

// FromRequest is the key that a client presents, or nothing. Clients put it where
// their own provider wants it. Where there are several, the first of these that is
// not empty is taken, whatever the others say, so that a request has one owner:
//
//	Authorization: Bearer …   OpenAI, Ollama, Anthropic's tokens
//	x-api-key                 Anthropic
//	x-goog-api-key            Gemini
//	api-key                   Azure
//	?key=…                    Gemini
//
// Nobody but [Keys.Admit] and [Keys.Identify] should see it. A URL with ?key=… must
// not be logged as it is.
func FromRequest(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if token = strings.TrimSpace(token); strings.EqualFold(scheme, "Bearer") && token != "" {
		return token
	}
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
		if key := strings.TrimSpace(r.Header.Get(name)); key != "" {
			return key
		}
	}
	if r.URL == nil || !strings.Contains(r.URL.RawQuery, "key=") { // most have none
		return ""
	}
	return strings.TrimSpace(r.URL.Query().Get("key"))
}
