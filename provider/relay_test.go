package provider_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider"
)

func TestStreamCallsWaitingBeforeItBlocks(t *testing.T) {
	const word = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"word"},"finish_reason":null}]}` + "\n\n"
	more := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 2 {
			_, _ = io.WriteString(w, word+word)
			_ = http.NewResponseController(w).Flush()
			<-more
		}
		_, _ = io.WriteString(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer s.Close()
	// The stream must wait after both words of the first half were sent, and not between them;
	// only then the server continues.
	words, waits := 0, 0
	ctx := modelcall.WithRelay(t.Context(), &modelcall.Relay{Waiting: func() {
		if words > 0 && words%2 == 0 && waits < words/2 {
			waits++
			more <- struct{}{}
		}
		if words%2 != 0 {
			t.Errorf("it waits behind %d words", words)
		}
	}})
	client := &provider.Client{BaseURL: s.URL, Model: "m"}
	for ev, err := range client.Stream(ctx, &dragoman.Request{Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "hi"}}}}}) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := ev.(*dragoman.PartDelta); ok && d.Text == "word" {
			words++
		}
	}
	if words != 4 || waits != 2 {
		t.Errorf("%d words, %d waits", words, waits)
	}
}

func TestReencodingDropsForeignNativeForms(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"word"},"finish_reason":"stop"}]}`)
	}))
	defer s.Close()
	for _, without := range []bool{false, true} {
		client := &provider.Client{BaseURL: s.URL, Model: "m"}
		ctx := t.Context()
		if without {
			ctx = wirekit.WithReencode(ctx, dialectname.Anthropic)
		}
		resp, err := client.Generate(ctx, &dragoman.Request{Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "hi"}}}}})
		if err != nil || len(resp.Output) != 1 {
			t.Fatal(resp, err)
		}
		if got := resp.Output[0].Native == nil; got != without {
			t.Errorf("without: %v, but the native form is left out: %v", without, got)
		}
	}
}
