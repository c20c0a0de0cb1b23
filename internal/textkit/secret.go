package textkit

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// SecretSpellings returns the forms in which servers repeat a text: unchanged, quoted (some
// servers escape more than necessary), and as part of a URL. The list may have
// duplicates.
func SecretSpellings(text string) []string {
	all := []string{text, url.QueryEscape(text), url.PathEscape(text)}
	quotes := []string{strconv.Quote(text)}
	if b, err := json.Marshal(text); err == nil { // a string can always be marshaled
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
