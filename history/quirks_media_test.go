package history_test

import (
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/targets"
)

func TestQuirkD14_UnsupportedMediaBecomesANote(t *testing.T) {
	image := dragoman.Image("image/png", []byte("x"))
	byURL := &dragoman.Media{Media: codes.MediaImage, URL: "http://x/y.png"}
	file := &dragoman.Media{Media: codes.MediaFile, FileID: "file-1"}
	film := &dragoman.Media{Media: codes.MediaVideo, Base64: "AA=="}
	doc := &dragoman.Media{Media: codes.MediaFile, Text: "plain"}
	shown := results(&dragoman.ToolResult{CallID: "a", Content: []dragoman.Part{image, text("seen")}})
	check(t, []row{
		{
			name: "a model without image support", o: history.Options{Target: caps(targets.Capabilities{NoImages: true})},
			in: []dragoman.Message{message(dragoman.RoleUser, image, doc)}, want: `user "[image not shown]" media:file`, report: "dropped (serious) /messages/0/parts/0",
		},
		{
			name: "in a result", o: history.Options{Target: caps(targets.Capabilities{NoImages: true})},
			in: []dragoman.Message{calls("a"), shown}, want: "assistant call:a\ntool result:a=\"[image not shown]seen\"", report: "dropped (serious) /messages/1/parts/0",
		},
		{
			name: "a wire with few media features",
			o: history.Options{Limits: strict(func(l *targets.Limits) {
				l.MediaKinds = []string{codes.MediaImage, codes.MediaFile}
				l.NoMediaURL, l.NoMediaFileID = true, true
			})},
			in:   []dragoman.Message{message(dragoman.RoleUser, image, byURL, file, film)},
			want: `user media:image "[image http://x/y.png not shown]" "[file file-1 not shown]" "[video not shown]"`, report: "accepts content, not URLs",
		},
		{
			name: "media only in user messages", o: history.Options{Limits: strict(func(l *targets.Limits) { l.MediaRoles = []dragoman.Role{dragoman.RoleUser} })},
			in:   []dragoman.Message{message(dragoman.RoleUser, image), message(dragoman.RoleAssistant, image)},
			want: "user media:image\nassistant \"[image not shown]\"", report: "/messages/1/parts/0",
		},
	})
}

func TestQuirkD38_FileIsNotSentAlone(t *testing.T) {
	o := history.Options{Limits: strict(func(l *targets.Limits) { l.TextWithFiles = true })}
	file := &dragoman.Media{Media: codes.MediaFile, MIME: "application/pdf", Base64: "AA=="}
	check(t, []row{
		{name: "alone", o: o, in: []dragoman.Message{message(dragoman.RoleUser, file)}, want: `user media:file "(see the attached file)"`, report: "synthesized (info) /messages/0"},
		{name: "with text", o: o, in: []dragoman.Message{message(dragoman.RoleUser, text("read"), file)}, want: `user "read" media:file`},
	})
}

func TestMediaInForeignStorageBecomesANote(t *testing.T) {
	at := func(url string) *dragoman.Media {
		return &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", URL: url}
	}
	file := &dragoman.Media{Media: codes.MediaFile, FileID: "file-1"}
	const s3, gs, gemini, web = "s3://b/k.png", "gs://b/k.png", "https://generativelanguage.googleapis.com/v1beta/files/a", "https://e/a.png"
	origin := func(d dragoman.Dialect, provider string) *dragoman.Origin {
		return &dragoman.Origin{Dialect: d, Provider: provider}
	}
	for _, tc := range []struct {
		to     dragoman.Dialect
		origin *dragoman.Origin
		media  *dragoman.Media
		stays  bool
	}{
		{dialectname.Bedrock, origin(dialectname.Bedrock, ""), at(s3), true},
		{dialectname.Bedrock, origin(dialectname.Anthropic, ""), at(s3), true},
		{dialectname.Bedrock, origin(dialectname.Bedrock, ""), at(web), false},
		{dialectname.Anthropic, origin(dialectname.Bedrock, ""), at(s3), false},
		{dialectname.OpenAIChat, origin(dialectname.Bedrock, ""), at(s3), false},
		{dialectname.OpenAIResponses, origin(dialectname.Gemini, ""), at(gs), false},
		{dialectname.Gemini, origin(dialectname.Bedrock, ""), at(s3), false},
		{dialectname.Gemini, origin(dialectname.Gemini, ""), at(gs), true},
		{dialectname.Gemini, origin(dialectname.Anthropic, ""), at(gemini), true},
		{dialectname.Anthropic, origin(dialectname.Gemini, ""), at(gemini), false},
		{dialectname.Anthropic, origin(dialectname.Gemini, ""), at(web), true},
		{dialectname.Anthropic, origin(dialectname.OpenAIChat, ""), file, false},
		{dialectname.OpenAIResponses, origin(dialectname.Anthropic, ""), file, false},
		{dialectname.OpenAIResponses, origin(dialectname.OpenAIChat, ""), file, true}, // the same storage
		{dialectname.OpenAIResponses, origin(dialectname.OpenAIResponses, "azure"), file, false},
		{dialectname.Anthropic, origin(dialectname.Anthropic, ""), file, true},
		{dialectname.Anthropic, nil, file, true},
	} {
		for _, c := range codecs {
			if c.Dialect() != tc.to {
				continue
			}
			m := message(dragoman.RoleUser, text("q"), tc.media)
			m.Origin = tc.origin
			res := results(&dragoman.ToolResult{CallID: "a", Name: "f_a", Content: []dragoman.Part{tc.media}})
			res.Origin = tc.origin
			req := &dragoman.Request{Messages: []dragoman.Message{m, calls("a"), res}, Tools: []dragoman.ToolSpec{{Name: "f_a"}}}
			out, rep, err := history.Normalize(req, history.Options{Limits: c.Limits(), Target: targets.Target{Provider: "openai"}})
			if err != nil {
				t.Fatal(err)
			}
			stays := out.Messages[0].Parts[1] == dragoman.Part(tc.media)
			inside := out.Messages[2].Parts[0].(*dragoman.ToolResult).Content[0] == dragoman.Part(tc.media)
			serious := rep.Err(dragoman.Serious) != nil
			if stays != tc.stays || inside != tc.stays || serious == tc.stays {
				t.Errorf("%+v of %+v to %s: stays %v, in a result %v\n%s", tc.media, tc.origin, tc.to, stays, inside, rep)
			}
		}
	}
}

func TestMessageKeepsWithinMediaLimits(t *testing.T) {
	image, file := &dragoman.Media{Media: codes.MediaImage, Base64: "AAAA", MIME: "image/png"}, &dragoman.Media{Media: codes.MediaFile, Text: "x"}
	shows := &dragoman.ToolResult{CallID: "a", Content: []dragoman.Part{image, image}}
	o := history.Options{Limits: strict(func(l *targets.Limits) { l.MaxImages, l.MaxDocuments = 2, 1 })}
	check(t, []row{
		{
			name: "the first ones stay", o: o, in: []dragoman.Message{message(dragoman.RoleUser, image, file, image, file, image)},
			want: "user media:image media:file media:image \"[file not shown]\" \"[image not shown]\"", report: "dropped (serious) /messages/0/parts/3",
		},
		{
			name: "media of results counts", o: o, in: []dragoman.Message{calls("a"), results(shows), message(dragoman.RoleUser, image), message(dragoman.RoleAssistant, text("ok")), message(dragoman.RoleUser, image)},
			want:   "assistant call:a\ntool result:a=\"\"\nuser \"[image not shown]\"\nassistant \"ok\"\nuser media:image",
			report: "dropped (serious) /messages/2/parts/0",
		},
		{
			name: "messages of the target's dialect too", o: o, in: []dragoman.Message{from(dragoman.Origin{Dialect: "test"}, message(dragoman.RoleUser, image, image, image))},
			want: `user media:image media:image "[image not shown]"`, report: "dropped (serious) /messages/0/parts/2",
		},
	})
}
