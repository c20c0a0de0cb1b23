package quirks_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/targets"
)

// Of Base64 documents, Anthropic accepts only PDF. A text document has its own kind of source there,
// whatever form it had in the other dialect.
func TestTextDocumentIsWrittenAsTextForAnthropic(t *testing.T) {
	document := func(mime, data string) *dragoman.Request {
		return &dragoman.Request{Model: "m", Messages: []dragoman.Message{
			crosstest.Message(dragoman.RoleUser, &dragoman.Media{Media: codes.MediaFile, MIME: mime, Base64: data}),
		}}
	}
	for _, c := range []struct{ mime, data, want string }{
		{"text/plain", "aGk=", `{"type":"text","media_type":"text/plain","data":"hi"}`},
		{"text/markdown", "aGk=", `{"type":"text","media_type":"text/plain","data":"hi"}`},
		{"application/pdf", "aGk=", `{"type":"base64","media_type":"application/pdf","data":"aGk="}`},
	} {
		enc, err := crosstest.CodecOf(dialectname.Anthropic).EncodeRequest(document(c.mime, c.data), dialect.EncodeOptions{})
		if err != nil || !strings.Contains(string(enc.Body), `"source":`+c.want) {
			t.Errorf("%s %s: %v\n%s", c.mime, c.data, err, enc.Body)
		}
	}
}

// Only Gemini has a place for the signature of a text (quirk G8). Other dialects report its loss.
func TestDroppedTextSignatureIsReported(t *testing.T) {
	req := requestOf(dragoman.UserText("q"), crosstest.Message(dragoman.RoleAssistant, &dragoman.Text{Text: "a", Signature: "c2ln"}), dragoman.UserText("and"))
	for _, c := range crosstest.Codecs {
		enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(enc.Report.String(), "signature") && !strings.Contains(string(enc.Body), "c2ln") {
			t.Errorf("%s: the loss is not reported\n%s\n%s", c.Dialect(), enc.Body, enc.Report.String())
		}
	}
}

// Clients spell media types differently, or omit them. The target gets a type it accepts, in its
// spelling; other media are replaced by a note, with a serious loss (quirk D14).
func TestQuirkD14_MediaHasAnAcceptedTypeOrIsANote(t *testing.T) {
	image := func(url string) string { return `{"type":"image_url","image_url":{"url":` + crosstest.JSON(url) + `}}` }
	file := func(data string) string { return `{"type":"file","file":{"file_data":` + crosstest.JSON(data) + `}}` }
	claude := func(block, mime, data string) string {
		return `{"type":"` + block + `","source":{"type":"base64","media_type":"` + mime + `","data":"` + data + `"}`
	}
	inline := func(mime, data string) string {
		return `{"inlineData":{"mimeType":"` + mime + `","data":"` + data + `"}}`
	}
	const png, svg = "iVBORw0KGgo=", "PHN2Zy8+"
	for _, c := range []struct{ part, anthropic, gemini string }{ // "" means a note
		{image("data:image/jpg;base64,/9j/4AAQ"), claude("image", "image/jpeg", "/9j/4AAQ"), inline("image/jpeg", "/9j/4AAQ")},
		{image("DATA:image/PNG;a=b;BASE64," + png), claude("image", "image/png", png), inline("image/png", png)},
		{image(" data:image/png;base64," + png), claude("image", "image/png", png), inline("image/png", png)},
		{image("data:;base64," + png), claude("image", "image/png", png), inline("image/png", png)},
		{image("data:image/svg+xml;base64," + svg), "", ""},
		{image("data:image/svg+xml,<svg/>"), "", ""},
		{image("data:image/svg+xml,%3Csvg/%3E"), "", ""},
		{image("data:;base64,aGk="), "", ""},
		{image("data:image/png"), "", ""},
		{image(png), "", ""},
		{file("data:application/zip;base64,UEsDBA=="), "", ""},
		{file("UEsDBA=="), "", ""},
		{file("JVBERi0xLjQ="), claude("document", "application/pdf", "JVBERi0xLjQ="), inline("application/pdf", "JVBERi0xLjQ=")},
		{file("data:image/png;base64," + png), claude("image", "image/png", png), inline("image/png", png)},
		{file("data:text/plain;charset=utf-8,a%20b"), `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a b"}`, inline("text/plain", "YSBi")},
		{file("data:text/plain;base64,/w=="), "", inline("text/plain", "/w==")}, // not UTF-8
	} {
		body := `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"q"},` + c.part + `]}]}`
		req, _, err := crosstest.CodecOf(dialectname.OpenAIChat).DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for d, want := range map[dragoman.Dialect]string{dialectname.Anthropic: c.anthropic, dialectname.Gemini: c.gemini} {
			enc, err := crosstest.CodecOf(d).EncodeRequest(req, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			serious := enc.Report.Err(dragoman.Serious) != nil
			switch {
			case want == "" && (!serious || !strings.Contains(string(enc.Body), " not shown]")):
				t.Errorf("%s to %s: no note\n%s\n%s", c.part, d, enc.Body, enc.Report)
			case want != "" && (serious || !strings.Contains(string(enc.Body), want)):
				t.Errorf("%s to %s: want %s\n%s\n%s", c.part, d, want, enc.Body, enc.Report)
			}
		}
	}
}

// The possible results for media of each kind in each API, in a user message and in a tool result.
const (
	inPlace  = iota // written in place
	movedOut        // written in another place
	noted           // replaced by a note
)

func TestQuirkD14_MediaIsWrittenOrReportedInEveryAPI(t *testing.T) {
	type fate struct{ user, result int }
	both, outside, lost := fate{inPlace, inPlace}, fate{inPlace, movedOut}, fate{noted, noted}
	for _, c := range []struct {
		kind                                                string
		mime, data                                          string
		chat, responses, anthropic, gemini, ollama, bedrock fate
	}{
		{codes.MediaImage, "image/png", "iVBORw0KGgo=", outside, both, both, both, both, both},
		{codes.MediaImage, "image/svg+xml", "PHN2Zy8+", lost, lost, lost, lost, lost, lost},
		{codes.MediaImage, "image/heic", "AAAAGGZ0eXBoZWlj", lost, lost, lost, outside, lost, lost},
		{codes.MediaImage, "image/bmp", "Qk0AAAAA", lost, lost, lost, outside, both, lost},
		{codes.MediaAudio, "audio/wav", "UklGRgAAAABXQVZF", outside, lost, lost, outside, both, fate{inPlace, noted}},
		{codes.MediaAudio, "audio/flac", "ZkxhQwAAACI=", lost, lost, lost, outside, both, fate{inPlace, noted}},
		{codes.MediaFile, "application/pdf", "JVBERi0xLjQ=", outside, both, both, both, lost, both},
		{codes.MediaFile, "application/zip", "UEsDBAAA", outside, both, lost, lost, lost, lost},
		{codes.MediaVideo, "video/mp4", "AAAAGGZ0eXBtcDQy", lost, lost, lost, outside, lost, both},
		{codes.MediaVideo, "video/x-msvideo", "UklGRgAAAABBVkkg", lost, lost, lost, outside, lost, lost},
	} {
		for d, want := range map[dragoman.Dialect]fate{
			dialectname.OpenAIChat: c.chat, dialectname.OpenAIResponses: c.responses, dialectname.Anthropic: c.anthropic,
			dialectname.Gemini: c.gemini, dialectname.Ollama: c.ollama, dialectname.Bedrock: c.bedrock,
		} {
			t.Run(c.mime+" to "+string(d), func(t *testing.T) {
				m := &dragoman.Media{Media: c.kind, MIME: c.mime, Base64: c.data, Name: "a.x"}
				user := requestOf(crosstest.Message(dragoman.RoleUser, &dragoman.Text{Text: "q"}, m))
				checkMedia(t, d, user, c.data, "/messages/0/parts/1", want.user)
				call := crosstest.Message(dragoman.RoleAssistant, &dragoman.ToolCall{ID: "call_1", Name: "f", Arguments: "{}"})
				res := crosstest.Message(dragoman.RoleTool, &dragoman.ToolResult{CallID: "call_1", Name: "f", Content: []dragoman.Part{&dragoman.Text{Text: "r"}, m}})
				checkMedia(t, d, requestOf(dragoman.UserText("q"), call, res), c.data, "/messages/2/parts/0/content/1", want.result)
			})
		}
	}
}

// checkMedia checks what happens to the media with this content, at a pointer of a request.
func checkMedia(t *testing.T, d dragoman.Dialect, req *dragoman.Request, data, at string, want int) {
	t.Helper()
	enc, err := crosstest.CodecOf(d).EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	written := strings.Contains(string(enc.Body), data)
	if note := strings.Contains(string(enc.Body), " not shown]"); written == note || written != (want != noted) {
		t.Errorf("at %s: written %v, note %v\n%s", at, written, note, enc.Body)
	}
	lost, moved := false, false
	for _, l := range enc.Report.Losses {
		here := l.Path == at
		lost = lost || here && l.Kind == dragoman.Dropped && l.Severity == dragoman.Serious
		moved = moved || l.Kind == dragoman.Moved && (here || strings.HasPrefix(at, l.Path+"/content"))
		if inside := strings.HasPrefix(l.Path, strings.TrimSuffix(at, "/content/1")+"/"); inside && !strings.HasPrefix(l.Path, at) {
			t.Errorf("%v is not at %s", l, at)
		}
	}
	if lost != (want == noted) || want == movedOut && !moved {
		t.Errorf("at %s: loss reported %v, move reported %v\n%s", at, lost, moved, enc.Report)
	}
}

// Other servers of the same API, and media that came from the API itself, keep the types that OpenAI
// refuses.
func TestQuirkD14_OnlyOpenAIRefusesItsMediaTypes(t *testing.T) {
	m := &dragoman.Media{Media: codes.MediaImage, MIME: "image/bmp", Base64: "Qk0AAAAA"}
	for _, d := range []dragoman.Dialect{dialectname.OpenAIChat, dialectname.OpenAIResponses} {
		theirs := requestOf(crosstest.Message(dragoman.RoleUser, &dragoman.Text{Text: "q"}, m))
		own := requestOf(crosstest.Message(dragoman.RoleUser, &dragoman.Text{Text: "q"}, m))
		own.Messages[0].Origin = &dragoman.Origin{Dialect: d}
		for req, any := range map[*dragoman.Request]bool{theirs: true, own: false} {
			enc, err := crosstest.CodecOf(d).EncodeRequest(req, dialect.EncodeOptions{Target: targets.Target{Dialect: d, Model: "m", Caps: targets.Capabilities{AnyMedia: any}}})
			if err != nil || !strings.Contains(string(enc.Body), "Qk0AAAAA") || enc.Report.Err(dragoman.Serious) != nil {
				t.Errorf("%s, any media %v: %v\n%s\n%s", d, any, err, enc.Body, enc.Report)
			}
		}
	}
}

// Ollama clients may send an image without content.
func TestEmptyMediaIsANote(t *testing.T) {
	for _, images := range []string{`[""]`, `[null]`} {
		body := `{"model":"m","messages":[{"role":"user","content":"q","images":` + images + `}]}`
		req, _, err := crosstest.CodecOf(dialectname.Ollama).DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			continue // an error is acceptable too
		}
		for _, c := range crosstest.Codecs {
			enc, err := c.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
			if err != nil {
				t.Fatal(err)
			}
			if enc.Report.Err(dragoman.Serious) == nil || !strings.Contains(string(enc.Body), "[image not shown]") {
				t.Errorf("%s for %s: %s\n%s", images, c.Dialect(), enc.Body, enc.Report)
			}
		}
	}
}

// A note names the media it replaces. It does not contain it.
func TestNoteNeverContainsTheMedia(t *testing.T) {
	content := strings.Repeat("iVBORw0KGgo", 300)
	for _, m := range []dragoman.Media{
		{Media: codes.MediaImage, URL: "Data:image/svg+xml," + content},
		{Media: codes.MediaImage, URL: content},
		{Media: codes.MediaImage, Name: "data:image/png;base64," + content},
		{Media: codes.MediaImage, FileID: content},
	} {
		if got := toolwire.Placeholder(&m); got != "[image not shown]" {
			t.Errorf("%.60q", got)
		}
	}
	if got := toolwire.Placeholder(&dragoman.Media{Media: codes.MediaImage, URL: "https://e/a.png"}); got != "[image https://e/a.png not shown]" {
		t.Error(got)
	}
}

func TestMediaKeepsItsMeaningInEveryDialect(t *testing.T) {
	request := func(c dialect.Codec, part string) string {
		if c.Dialect() == dialectname.OpenAIResponses {
			return `{"model":"m","input":[{"type":"message","role":"user","content":[` + part + `]}]}`
		}
		return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[` + part + `]}]}`
	}
	chat, responses, claude := openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}
	const (
		image  = `{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}`
		input  = `{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"auto"}`
		source = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}`
		pdf    = `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA=="},"title":"r.pdf"}`
	)
	for _, tc := range []struct {
		from dialect.Codec
		part string
		to   dialect.Codec
		want string
		lost string // empty if the message has no loss
	}{
		{chat, image, responses, input, ""},
		{responses, input, claude, source, ""},
		{claude, source, chat, image, ""},
		{claude, pdf, chat, `{"type":"file","file":{"file_data":"data:application/pdf;base64,AA=="}}`, "document title"},
	} {
		out, rep := crosstest.ConvertRequest(t, tc.from, tc.to, request(tc.from, tc.part))
		list := out["messages"]
		if tc.to.Dialect() == dialectname.OpenAIResponses {
			list = out["input"]
		}
		if !strings.Contains(string(list), tc.want) {
			t.Errorf("%s to %s: got %s, want %s", tc.from.Dialect(), tc.to.Dialect(), list, tc.want)
		}
		var lost []string
		for _, l := range rep.Losses {
			if strings.HasPrefix(l.Path, "/messages/0/parts") {
				lost = append(lost, l.Detail)
			}
		}
		if got := strings.Join(lost, "; "); tc.lost == "" && got != "" || !strings.Contains(got, tc.lost) {
			t.Errorf("%s to %s: lost %q, want %q", tc.from.Dialect(), tc.to.Dialect(), got, tc.lost)
		}
	}
}

// requestOf returns a request with messages.
func requestOf(ms ...dragoman.Message) *dragoman.Request {
	return &dragoman.Request{Model: "m", Messages: ms}
}
