package provider

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"mime"
	"regexp"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// Proxies, portals and wrong addresses respond with HTML pages, under any status. Errors quote
// the text of the page without markup, shortened, because it is meant for people.

// maxPageText is the number of characters of a page that an error quotes.
const maxPageText = 300

var (
	// hiddenElement matches elements of a page that are not displayed; element matches the markup of
	// the others.
	hiddenElement = regexp.MustCompile(`(?is)<(script|style|svg)\b.*?</(?:script|style|svg)\s*>|<!--.*?-->`)
	element       = regexp.MustCompile(`<[^<>]*>`)
)

// isPage reports whether a text is a page of HTML.
func isPage(text string) bool {
	head := strings.ToLower(strings.TrimLeft(text, " \t\r\n\ufeff"))
	return strings.HasPrefix(head, "<!doctype html") || strings.HasPrefix(head, "<html")
}

// pageText returns the visible text of a page in one line.
func pageText(page string) string {
	text := html.UnescapeString(element.ReplaceAllString(hiddenElement.ReplaceAllString(page, " "), " "))
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
}

// excerpt returns the beginning of a text, or the visible text if it is a page.
func excerpt(text string) string {
	switch page := isPage(text); {
	case page && pageText(text) == "":
		return "an HTML page without text"
	case page:
		return fmt.Sprintf("an HTML page that says %q", shorten(pageText(text)))
	default:
		return fmt.Sprintf("it begins with %q", shorten(strings.TrimSpace(strings.ToValidUTF8(text, "?"))))
	}
}

func shorten(s string) string {
	if runes := []rune(s); len(runes) > maxPageText {
		return string(runes[:maxPageText]) + "…"
	}
	return s
}

// invalidResponse returns the error for a body that is not a response although the status is a
// success. The cause is the decoding error.
func (a *attemptResponse) invalidResponse(what string, body []byte, cause error) error {
	if len(bytes.TrimSpace(body)) == 0 {
		what += ": it is empty"
	} else {
		text := a.x.secrets.text(string(body[:min(len(body), maxErrorBytes)]))
		what += a.contentType() + ": " + excerpt(text)
		if isPage(text) {
			what += "; check the base URL of the provider"
		}
	}
	e := a.x.secrets.apiError(&dragoman.APIError{Class: dragoman.ErrorServer, Status: a.StatusCode, Message: what, Err: cause})
	a.x.logError(a, e)
	return e
}

// contentType returns the content type of the body in parentheses; empty if there is none, or
// if it is JSON.
func (a *attemptResponse) contentType() string {
	if t, _, err := mime.ParseMediaType(a.Header.Get("Content-Type")); err == nil && t != "application/json" {
		return " (" + clip(t, 80) + ")"
	}
	return ""
}

// isJSON reports whether a body looks like JSON, valid or not. If so, the codec reports a
// better error.
func isJSON(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[')
}

// isNotStream reports whether a body that begins with this byte is neither a stream nor JSON:
// markup, or text with the content type of a stream.
func (a *attemptResponse) isNotStream(first byte) bool {
	if first == '<' {
		return true
	}
	t, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil || t != "text/html" && t != "text/plain" {
		return false
	}
	// An event begins with a field, a comment, or a UTF-8 byte order mark. Servers may also
	// send JSON instead.
	return first != 0 && first < 0x80 && !strings.ContainsRune("deir:{[\"", rune(first))
}

// pageError reads a body that is neither a stream nor JSON, and returns an error that describes it.
func (a *attemptResponse) pageError() error {
	a.drainLimit = errorWait
	body, err := io.ReadAll(io.LimitReader(a, maxErrorBytes))
	if err != nil && len(body) == 0 {
		return brokenStreamError(err, nil)
	}
	if !a.x.stream {
		return a.invalidResponse("the upstream response is not JSON", body, nil)
	}
	return a.invalidResponse("the upstream response is not a stream", body, dragoman.ErrIncompleteStream)
}
