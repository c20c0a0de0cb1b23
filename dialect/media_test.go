package dialect_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// Of documents in Base64 Anthropic takes PDF only; one of text has a source of
// its own there, however it was told elsewhere.
func TestADocumentOfTextIsWrittenForAnthropicAsText(t *testing.T) {
	document := func(mime, data string) *dragoman.Request {
		return &dragoman.Request{Model: "m", Messages: []dragoman.Message{
			says(dragoman.RoleUser, &dragoman.Media{Media: dragoman.MediaFile, MIME: mime, Base64: data}),
		}}
	}
	for _, c := range []struct{ mime, data, want string }{
		{"text/plain", "aGk=", `{"type":"text","media_type":"text/plain","data":"hi"}`},
		{"text/markdown", "aGk=", `{"type":"text","media_type":"text/plain","data":"hi"}`},
		{"application/pdf", "aGk=", `{"type":"base64","media_type":"application/pdf","data":"aGk="}`},
		{"text/plain", "/w==", `{"type":"base64","media_type":"text/plain","data":"/w=="}`}, // no UTF-8
	} {
		enc, err := codecOf(dragoman.Anthropic).EncodeRequest(document(c.mime, c.data), dialect.EncodeOptions{})
		if err != nil || !strings.Contains(string(enc.Body), `"source":`+c.want) {
			t.Errorf("%s %s: %v\n%s", c.mime, c.data, err, enc.Body)
		}
	}
}

// A text that Gemini signed is the one part of an answer whose state no other
// dialect has a place for (quirk G8): it is never lost in silence.
func TestASignedTextIsNotUnsignedInSilence(t *testing.T) {
	req := talk(0, dragoman.UserText("q"), says(dragoman.RoleAssistant, &dragoman.Text{Text: "a", Signature: "c2ln"}), dragoman.UserText("and")).req
	for _, c := range codecs {
		enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(enc.Report.String(), "signature") && !strings.Contains(string(enc.Body), "c2ln") {
			t.Errorf("%s: lost without a word\n%s\n%s", c.Dialect(), enc.Body, enc.Report.String())
		}
	}
}
