package provider

import (
	"net/url"
	"slices"
	"strings"
)

// forwardQuery puts the parameters of who asks on the address of a request, in their order,
// behind those that it has. What they are named is remembered: their values are no secrets
// of ours.
func (x *exchange) forwardQuery(u *url.URL) {
	if x.query == "" {
		return
	}
	own := u.Query()
	x.params = x.params[:0]
	for piece := range strings.SplitSeq(x.query, "&") {
		raw, _, _ := strings.Cut(piece, "=")
		name, err := url.QueryUnescape(raw)
		if err != nil || name == "" || strings.Contains(piece, ";") || own.Has(name) || !forwardable(name) {
			continue
		}
		if x.params = append(x.params, name); u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += piece
	}
}

// withheld are parameters that are not passed on, and withheldWords what the names of others
// have in them: credentials, which are meant for who was asked first, and the form and
// version of the answer, which whoever sends the request chose.
var (
	withheld      = []string{"alt", "callback", "apiversion", "prettyprint", "fields", "code", "sig", "sv", "se"}
	withheldWords = []string{"key", "token", "secret", "auth", "password", "passwd", "credential", "signature", "session", "jwt"}
)

// forwardable reports whether a parameter is passed on.
func forwardable(name string) bool {
	plain := strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "", "$", "").Replace(name))
	return !slices.Contains(withheld, plain) && !slices.ContainsFunc(withheldWords, func(word string) bool { return strings.Contains(plain, word) })
}
