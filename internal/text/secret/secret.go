// Package secret knows the ways in which a credential is written.
package secret

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// Spellings are the ways in which servers repeat a text: as it is, in quotes, where
// some escape more than they must, and as part of a URL. Some may be the same.
func Spellings(text string) []string {
	all := []string{text, url.QueryEscape(text), url.PathEscape(text)}
	quotes := []string{strconv.Quote(text)}
	if b, err := json.Marshal(text); err == nil { // as a string always can be
		quotes = append(quotes, string(b))
	}
	for _, quoted := range quotes {
		inner := quoted[1 : len(quoted)-1]
		for _, plus := range []string{"+", `\u002b`, `\u002B`} {
			escaped := strings.ReplaceAll(inner, "+", plus)
			all = append(all, escaped, strings.ReplaceAll(escaped, "/", `\/`))
		}
	}
	return all
}
