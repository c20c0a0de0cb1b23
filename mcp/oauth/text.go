package oauth

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

const maxShown = 300

// show quotes a text of a server for errors and steps, shortened and with invisible
// characters escaped.
func show(s string) string {
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return `"` + textkit.Visible(s) + `"`
}

func quoteList(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, s := range list {
		if i == 8 {
			fmt.Fprintf(&b, " and %d more", len(list)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(show(s))
	}
	return b.String()
}

func statusText(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}
