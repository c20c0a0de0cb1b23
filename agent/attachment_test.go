package agent_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/tool"
)

// imageServer speaks Anthropic Messages, asks for the tool "look" first, and refuses
// every image without its content, as the real one does.
func imageServer(t *testing.T, picture []byte) (url string, images *[]int) {
	t.Helper()
	images = new([]int)
	type block struct {
		Type   string
		Source *struct {
			Type, Data string
			MediaType  string `json:"media_type"`
		}
		Content json.RawMessage
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Messages []struct{ Content json.RawMessage }
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"not JSON"}}`, http.StatusBadRequest)
			return
		}
		n, bad := 0, false
		var count func(raw json.RawMessage)
		count = func(raw json.RawMessage) {
			var blocks []block
			if json.Unmarshal(raw, &blocks) != nil {
				return
			}
			for _, b := range blocks {
				if b.Type == "image" {
					n++
					data, err := base64.StdEncoding.DecodeString(b.Source.Data)
					bad = bad || err != nil || b.Source.Type != "base64" || b.Source.MediaType != "image/png" || !bytes.Equal(data, picture)
				}
				count(b.Content)
			}
		}
		for _, m := range req.Messages {
			count(m.Content)
		}
		*images = append(*images, n)
		if bad {
			http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"image: invalid base64 data"}}`, http.StatusBadRequest)
			return
		}
		answer := `{"type":"text","text":"Seen."}`
		stop := "end_turn"
		if n == 1 {
			answer, stop = `{"type":"tool_use","id":"toolu_1","name":"look","input":{}}`, "tool_use"
		}
		_, _ = io.WriteString(w, `{"id":"m","type":"message","role":"assistant","model":"c","content":[`+answer+`],"stop_reason":"`+stop+`","usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, images
}

func TestDecision17_RequestsHaveTheContentAndTheSessionReferences(t *testing.T) {
	content := bytes.Repeat([]byte("picture "), 4000)
	url, images := imageServer(t, content)
	m := &provider.Client{Name: "anthropic", Codec: anthropic.Codec{}, BaseURL: url, Model: "claude-opus-5-5"}
	look := tool.New("look", "Looks.", func(context.Context, word) (dragoman.Part, error) { return dragoman.Image("image/png", content), nil })
	a := agent.Agent{Model: m, Tools: []tool.Tool{look}}
	path := filepath.Join(t.TempDir(), "s.db")

	store, s := openFile(t, path)
	ask := dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "What is it?"}, dragoman.Image("image/png", content)}}
	res := must[*agent.Result](t)(a.Run(t.Context(), "", agent.In(s), agent.Messages(ask)))
	if res.Output != "Seen." {
		t.Errorf("%+v", res)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	store, s = openFile(t, path) // another process
	defer store.Close()
	must[*agent.Result](t)(a.Run(t.Context(), "And now?", agent.In(s)))
	if len(*images) != 3 || (*images)[0] != 1 || (*images)[1] != 2 || (*images)[2] != 2 {
		t.Errorf("the requests have %v images", *images)
	}
	inline, attachments := 0, 0
	encoded := base64.StdEncoding.EncodeToString(content)
	for e, err := range s.Entries(t.Context(), session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Kind == session.KindAttachment:
			attachments++
		case bytes.Contains(e.Body, []byte(encoded)):
			inline++
			t.Errorf("entry %d, of kind %s, has the content", e.Seq, e.Kind)
		}
	}
	if attachments != 1 {
		t.Errorf("%d attachments", attachments)
	}
}

func TestDecision35_ARunWithAnUnknownAttachmentFailsBeforeTheModelIsAsked(t *testing.T) {
	store := must[*sqlite.Store](t)(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), sqlite.Options{Relaxed: true}))
	defer store.Close()
	s := must[*session.Session](t)(session.Create(t.Context(), store, session.Info{}))
	ask := dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Media{Media: dragoman.MediaImage, MIME: "image/png", Attachment: "att_gone"}}}
	m := model()
	if _, err := (agent.Agent{Model: m}).Run(t.Context(), "look", agent.In(s), agent.Messages(ask)); !errors.Is(err, dragoman.ErrAttachment) || !strings.Contains(err.Error(), "att_gone") || len(m.asked) != 0 {
		t.Errorf("%v, asked %d times", err, len(m.asked))
	}
	url, images := imageServer(t, nil)
	client := &provider.Client{Name: "anthropic", Codec: anthropic.Codec{}, BaseURL: url, Model: "claude-opus-5-5"}
	if _, err := (agent.Agent{Model: client}).Run(t.Context(), "look", agent.Messages(ask)); !errors.Is(err, dragoman.ErrAttachment) || len(*images) != 0 {
		t.Errorf("without a session: %v, asked %d times", err, len(*images))
	}
}
