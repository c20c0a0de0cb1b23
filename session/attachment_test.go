package session_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// picture is an image of some size.
func picture(seed byte, size int) *dragoman.Media {
	b := make([]byte, size)
	for i := range b {
		b[i] = seed + byte(i*i>>3)
	}
	return dragoman.Image("image/png", b)
}

// withMedia is a conversation with images in a prompt and in a result.
func withMedia(seed byte) []dragoman.Message {
	ms := exchange("q", string('a'+seed), "r")
	ms[0].Parts = append(ms[0].Parts, picture(seed, 30_000), &dragoman.Media{Media: codes.MediaFile, MIME: "text/plain", Text: strings.Repeat("text ", 1000), Name: "a.txt"})
	ms[2].Parts[0].(*dragoman.ToolResult).Content = []dragoman.Part{&dragoman.Text{Text: "seen"}, picture(seed, 30_000), picture(seed, 10)}
	return ms
}

func stored(t testing.TB, store session.Store, id string) (n int, bodies string) {
	t.Helper()
	var b strings.Builder
	for e, err := range store.Read(t.Context(), id, session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == "attachment" {
			n++
			continue
		}
		b.Write(e.Body)
	}
	return n, b.String()
}

func asJSON(t testing.TB, ms []dragoman.Message) string {
	t.Helper()
	b, err := json.Marshal(ms)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDecision85_MediaIsStoredOnceAndExpanded(t *testing.T) {
	store := &session.Memory{}
	s := created(t, store)
	messages := withMedia(0)
	before := asJSON(t, messages)
	save(t, s, messages...)
	save(t, s, dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{picture(0, 30_000)}}) // again
	if asJSON(t, messages) != before {
		t.Error("the messages of the caller changed")
	}
	content := base64.StdEncoding.EncodeToString([]byte{0, 0, 0, 1, 2, 3, 4, 6, 8, 10})[:8]
	n, bodies := stored(t, store, s.ID())
	if n != 2 || len(bodies) > 6000 || strings.Contains(bodies, content+content) {
		t.Errorf("%d attachments and %d other bytes", n, len(bodies))
	}
	var out bytes.Buffer
	if err := session.Export(t.Context(), store, s.ID(), &out); err != nil {
		t.Fatal(err)
	}
	other := &session.Memory{}
	if _, err := session.Import(t.Context(), other, &out, ""); err != nil {
		t.Fatal(err)
	}
	branch, err := s.Branch(t.Context(), s.Head(), session.Info{ID: "b"})
	if err != nil {
		t.Fatal(err)
	}
	imported, err := session.Open(t.Context(), other, s.ID())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*session.Session{s, branch, imported} {
		loaded, _, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if m := loaded[0].Parts[1].(*dragoman.Media); m.Base64 != "" || m.Attachment == "" || m.MIME != "image/png" {
			t.Errorf("%+v", m)
		}
		if err := (&dragoman.Request{Messages: loaded}).Validate(); !errors.Is(err, dragoman.ErrAttachment) {
			t.Errorf("a request with references is valid: %v", err)
		}
		if points := history.CutPoints(loaded); len(points) < 2 {
			t.Errorf("a conversation with references cannot be cut: %v", points)
		}
		expanded, err := s.Expand(t.Context(), loaded)
		if err != nil || asJSON(t, expanded[:4]) != before {
			t.Errorf("session %s: %v", s.ID(), err)
		}
		if loaded[0].Parts[1].(*dragoman.Media).Attachment == "" {
			t.Error("Expand changed its input")
		}
	}
}

func TestDecision85_MissingAttachmentIsAnError(t *testing.T) {
	s := created(t, &session.Memory{})
	ref, err := s.Attach(t.Context(), picture(1, 5000))
	if err != nil || ref.Attachment == "" || ref.Base64 != "" {
		t.Fatalf("%+v %v", ref, err)
	}
	ask := []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{ref}}}
	if out, err := s.Expand(t.Context(), ask); err != nil || out[0].Parts[0].(*dragoman.Media).Base64 != picture(1, 5000).Base64 {
		t.Error(err)
	}
	missing := []dragoman.Message{dragoman.ToolResults(&dragoman.ToolResult{CallID: "c", Content: []dragoman.Part{&dragoman.Media{Media: codes.MediaImage, Attachment: "att_gone"}}})}
	for name, s := range map[string]*session.Session{"unknown": s, "another session": created(t, &session.Memory{})} {
		ms := missing
		if name != "unknown" {
			ms = ask
		}
		if _, err := s.Expand(t.Context(), ms); !errors.Is(err, dragoman.ErrAttachment) || !strings.Contains(err.Error(), "att_") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecision85_JournalRefersToMedia(t *testing.T) {
	store := &session.Memory{}
	s := created(t, store)
	in := tool.Intent{CallRef: tool.CallRef{Run: "r", Turn: 1, CallID: "c"}}
	if _, err := s.Begin(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	res := &dragoman.ToolResult{CallID: "c", Content: []dragoman.Part{picture(3, 9000)}}
	if err := s.End(t.Context(), in, res); err != nil {
		t.Fatal(err)
	}
	save(t, s, dragoman.ToolResults(res))
	if n, bodies := stored(t, store, s.ID()); n != 1 || len(bodies) > 2000 {
		t.Errorf("%d attachments and %d other bytes", n, len(bodies))
	}
	prior, err := s.Recall(t.Context(), in.CallRef)
	if err != nil || prior.Result.Content[0].(*dragoman.Media).Base64 != picture(3, 9000).Base64 {
		t.Errorf("%+v %v", prior, err)
	}
}

// Actions get media with their content. Their native histories are stored with references.
// A conversation in memory is recognized by its stored form.
func TestDecision85_NativeHistoriesReferToMedia(t *testing.T) {
	for _, c := range codecs {
		t.Run(string(c.Dialect()), func(t *testing.T) {
			store := &session.Memory{}
			s := created(t, store)
			w := on(t, c, extension.Compact{Keep: 3, OnSave: true})
			if err := s.Connect(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			whole := append(append(exchange("q0", "z", "r0"), exchange("q1", "y", "r1")...), withMedia(0)...)
			save(t, s, whole...)
			origin, match := w.w.Target.Origin(), c.Limits().Replay.Messages
			sent, err := s.MessagesInPlaceOf(t.Context(), whole, origin, match)
			if err != nil || len(sent) >= len(whole) {
				t.Fatalf("%d of %d messages, %v", len(sent), len(whole), err)
			}
			if _, bodies := stored(t, store, s.ID()); len(bodies) > 20_000 {
				t.Errorf("the log has %d bytes without its attachments", len(bodies))
			}
			compacted := asJSON(t, sent)
			if strings.Contains(compacted, picture(0, 30_000).Base64) {
				t.Error("the native history is not compact")
			}
			expanded, err := s.Expand(t.Context(), sent)
			if err != nil {
				t.Fatal(err)
			}
			req := &dragoman.Request{Model: "m", Messages: expanded}
			if err := req.Validate(); err != nil {
				t.Error(err)
			}
			if asJSON(t, expanded) == compacted || strings.Contains(asJSON(t, expanded), "attachment") {
				t.Errorf("references are left: %.2000s", asJSON(t, expanded))
			}
			if err := s.Act(t.Context(), w, session.Action{ID: extension.CompactID, Params: json.RawMessage(`{"keep":1}`)}); err != nil {
				t.Error(err)
			}
		})
	}
}
