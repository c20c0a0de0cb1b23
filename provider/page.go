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

// Proxies, portals and wrong addresses answer with pages, under any status. What
// they say is for people, and told as such: their words without the markup, short.

// maxPageText is how many characters of a page are told.
const maxPageText = 300

var (
	// unseen are the elements of a page that nobody sees; element is the markup of
	// the others.
	unseen  = regexp.MustCompile(`(?is)<(script|style|svg)\b.*?</(?:script|style|svg)\s*>|<!--.*?-->`)
	element = regexp.MustCompile(`<[^<>]*>`)
)

// isPage reports whether a text is a page of HTML.
func isPage(text string) bool {
	head := strings.ToLower(strings.TrimLeft(text, " \t\r\n\ufeff"))
	return strings.HasPrefix(head, "<!doctype html") || strings.HasPrefix(head, "<html")
}

// pageText is what a page says, in one line.
func pageText(page string) string {
	text := html.UnescapeString(element.ReplaceAllString(unseen.ReplaceAllString(page, " "), " "))
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
}

// excerpt tells how a text begins, or what it says where it is a page.
func excerpt(text string) string {
	switch page := isPage(text); {
	case page && pageText(text) == "":
		return "a page of HTML without words"
	case page:
		return fmt.Sprintf("a page of HTML that says %q", shortened(pageText(text)))
	default:
		return fmt.Sprintf("it begins with %q", shortened(strings.TrimSpace(strings.ToValidUTF8(text, "?"))))
	}
}

func shortened(s string) string {
	if runes := []rune(s); len(runes) > maxPageText {
		return string(runes[:maxPageText]) + "…"
	}
	return s
}

// unanswered is the error of an answer that is none, under a status that says it is
// one. The cause is what could not be read.
func (a *answer) unanswered(what string, body []byte, cause error) error {
	if len(bytes.TrimSpace(body)) == 0 {
		what += ": it is empty"
	} else {
		text := a.x.secrets.text(string(body[:min(len(body), maxErrorBytes)]))
		what += a.contentType() + ": " + excerpt(text)
		if isPage(text) {
			what += "; check the base URL"
		}
	}
	e := a.x.secrets.apiError(&dragoman.APIError{Class: dragoman.ErrorServer, Status: a.StatusCode, Message: what, Err: cause})
	a.x.logRefusal(a, e)
	return e
}

// contentType is that of the body, in brackets; empty where it has none, or one that
// says nothing else.
func (a *answer) contentType() string {
	if t, _, err := mime.ParseMediaType(a.Header.Get("Content-Type")); err == nil && t != "application/json" {
		return " (" + clip(t, 80) + ")"
	}
	return ""
}

// isJSON reports whether a body is meant to be JSON, if perhaps not well made: then
// the codec knows better what is wrong.
func isJSON(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[')
}

// noStream reports whether a body that begins with a byte is no stream, nor an answer
// or an error as JSON: markup, or a text that is called one.
func (a *answer) noStream(first byte) bool {
	if first == '<' {
		return true
	}
	t, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil || t != "text/html" && t != "text/plain" {
		return false
	}
	// What an event begins with: one of its fields, a comment, or the mark of UTF-8;
	// and JSON, which servers send instead.
	return first != 0 && first < 0x80 && !strings.ContainsRune("deir:{[\"", rune(first))
}

// page reads a body that is neither a stream nor JSON, and returns the error that says
// what it is.
func (a *answer) page() error {
	a.last = errorWait
	body, err := io.ReadAll(io.LimitReader(a, maxErrorBytes))
	if err != nil && len(body) == 0 {
		return broken(err, nil)
	}
	if !a.x.stream {
		return a.unanswered("the server's answer is no JSON", body, nil)
	}
	return a.unanswered("the server's answer is no stream", body, dragoman.ErrIncompleteStream)
}
