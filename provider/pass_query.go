package provider

import (
	"net/url"
	"slices"
	"strings"
)

// forwardQuery adds the client's query parameters to the URL, in order, after those that it
// has. It records their names, because their values are not our secrets.
func (x *exchange) forwardQuery(u *url.URL) {
	if x.clientQuery == "" {
		return
	}
	own := u.Query()
	x.clientParams = x.clientParams[:0]
	for piece := range strings.SplitSeq(x.clientQuery, "&") {
		raw, _, _ := strings.Cut(piece, "=")
		name, err := url.QueryUnescape(raw)
		if err != nil || name == "" || strings.Contains(piece, ";") || own.Has(name) || !forwardable(name) {
			continue
		}
		if x.clientParams = append(x.clientParams, name); u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += piece
	}
}

// withheldParams lists the parameters that are not forwarded, and withheldWords words in the names of
// others: credentials, which are meant for the first server, and the format and version of the
// response, which the sender of the request chooses.
var (
	withheldParams = []string{"alt", "callback", "apiversion", "prettyprint", "fields", "code", "sig", "sv", "se"}
	withheldWords  = []string{"key", "token", "secret", "auth", "password", "passwd", "credential", "signature", "session", "jwt"}
)

// forwardable reports whether a parameter is forwarded.
func forwardable(name string) bool {
	plain := strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "", "$", "").Replace(name))
	return !slices.Contains(withheldParams, plain) && !slices.ContainsFunc(withheldWords, func(word string) bool { return strings.Contains(plain, word) })
}
