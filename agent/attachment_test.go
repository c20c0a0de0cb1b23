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
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/tool"
)

// imageServer implements Anthropic Messages, calls the tool "look" first, and refuses every
// image without its content, as the real server does.
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

func TestDecision85_SessionHasReferencesAndRequestsHaveContent(t *testing.T) {
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
		case e.Kind == "attachment":
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

func TestDecision85_UnknownAttachmentFailsBeforeModelCall(t *testing.T) {
	store := must[*sqlite.Store](t)(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), sqlite.Options{Relaxed: true}))
	defer store.Close()
	s := must[*session.Session](t)(session.Create(t.Context(), store, session.Info{}))
	ask := dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Attachment: "att_gone"}}}
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

// pictureTool returns a tool whose output is a picture.
func pictureTool(picture *dragoman.Media) tool.Tool {
	return tool.New("show", "Shows.", func(context.Context, word) (dragoman.Part, error) { return picture, nil })
}

// pictures returns the contents of the pictures in a request.
func pictures(parts []dragoman.Part) (out []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Media:
			out = append(out, p.Base64)
		case *dragoman.ToolResult:
			out = append(out, pictures(p.Content)...)
		}
	}
	return out
}

func TestDecision85_StateOfPendingRunHasReferences(t *testing.T) {
	picture := dragoman.Image("image/png", bytes.Repeat([]byte("picture "), 1000))
	inner := agent.Agent{Name: "inner", Model: model(calls("x show", "y ask"), textResponse("inner done"))}
	for name, c := range map[string]struct {
		script []any
		model  *scripted // the model that gets the picture
	}{
		"a settled result":   {[]any{calls("a show", "b ask"), textResponse("done")}, nil},
		"an agent as a tool": {[]any{calls(`a inner {"task":"look"}`), textResponse("done")}, inner.Model.(*scripted)},
	} {
		var did counted
		ask := did.tool("ask", tool.NeedsApproval())
		m := model(c.script...)
		a := agent.Agent{Model: m, Tools: []tool.Tool{pictureTool(picture), ask}}
		shown := m
		if c.model != nil {
			inner := inner
			inner.Tools = a.Tools
			a.Tools = []tool.Tool{inner.AsTool()}
			shown = c.model
		}
		path := filepath.Join(t.TempDir(), "s.db")
		store, s := openFile(t, path)
		res, err := a.Run(t.Context(), "go", agent.In(s))
		if !errors.Is(err, agent.ErrInterrupted) {
			t.Fatal(name, err)
		}
		if blob := must[[]byte](t)(json.Marshal(res.State)); c.model == nil && !bytes.Contains(blob, []byte(picture.Base64)) {
			t.Errorf("%s: the state that the run returns does not have the picture", name)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}

		store, s = openFile(t, path) // another process
		_, state, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(state) > 3500 || bytes.Contains(state, []byte(picture.Base64[:500])) || !bytes.Contains(state, []byte(`"att_`)) {
			t.Errorf("%s: the stored state has %d bytes: %.2000s", name, len(state), state)
		}
		must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(s), agent.ApproveAll(res.Pending)))
		var got []string
		for _, msg := range shown.asked[len(shown.asked)-1].Messages {
			got = append(got, pictures(msg.Parts)...)
		}
		if len(got) != 1 || got[0] != picture.Base64 {
			t.Errorf("%s: the model sees %d pictures", name, len(got))
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A conversation that a handoff filtered is part of the state.
func TestDecision85_FilteredConversationHasReferences(t *testing.T) {
	picture := dragoman.Image("image/png", bytes.Repeat([]byte("picture "), 1000))
	var did counted
	second := &agent.Agent{Name: "second", Model: model(calls("b ask"), textResponse("done")), Tools: []tool.Tool{did.tool("ask", tool.NeedsApproval())}}
	first := agent.Agent{Name: "first", Model: model(calls("a transfer_to_second")), Handoffs: []agent.Handoff{{
		To: second, Filter: func(ms []dragoman.Message) []dragoman.Message { return ms[:1] },
	}}}
	path := filepath.Join(t.TempDir(), "s.db")
	store, s := openFile(t, path)
	look := dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{picture}}
	res, err := first.Run(t.Context(), "", agent.In(s), agent.Messages(look))
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store, s = openFile(t, path)
	defer store.Close()
	for e, err := range s.Entries(t.Context(), session.Query{}) {
		if err != nil || e.Kind != "attachment" && bytes.Contains(e.Body, []byte(picture.Base64[:500])) {
			t.Errorf("entry %d, of kind %s, has the content: %v", e.Seq, e.Kind, err)
		}
	}
	must[*agent.Result](t)(first.Resume(t.Context(), nil, agent.In(s), agent.ApproveAll(res.Pending)))
	for i, req := range second.Model.(*scripted).asked {
		if got := pictures(req.Messages[0].Parts); len(got) != 1 || got[0] != picture.Base64 {
			t.Errorf("request %d has %d pictures", i, len(got))
		}
	}
}

// Without a session, the state contains everything that a run needs.
func TestDecision85_StateWithoutSessionHasItsMedia(t *testing.T) {
	picture := dragoman.Image("image/png", bytes.Repeat([]byte("picture "), 1000))
	var did counted
	m := model(calls("a show", "b ask"), textResponse("done"))
	a := agent.Agent{Model: m, Tools: []tool.Tool{pictureTool(picture), did.tool("ask", tool.NeedsApproval())}}
	res, err := a.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State), agent.ApproveAll(res.Pending)))
	req := m.asked[len(m.asked)-1]
	if got := pictures(req.Messages[len(req.Messages)-1].Parts); len(got) != 1 || got[0] != picture.Base64 {
		t.Errorf("the model sees %d pictures", len(got))
	}
}
