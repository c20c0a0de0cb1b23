package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/provider/internal/servers"
)

// chunkCounter counts the chunks and adds the number to the response.
type chunkCounter struct {
	seen *extension.Accumulator[int]
	fail string
}

func newCounter() chunkCounter {
	return chunkCounter{seen: &extension.Accumulator[int]{
		Path: "chunks", Fold: func(sum, piece int) int { return sum + piece },
		Extract: func(c json.RawMessage) (int, bool, error) {
			if !json.Valid(c) {
				return 0, false, errors.New("no JSON")
			}
			return 1, true, nil
		},
	}}
}

func (chunkCounter) Info() extension.Info { return extension.Info{Name: "counter"} }

func (c chunkCounter) Prepare(context.Context, *extension.Exchange) error {
	if c.fail == "prepare" {
		panic("no")
	}
	return nil
}

func (c chunkCounter) ReadChunk(_ context.Context, x *extension.Exchange, chunk json.RawMessage) error {
	if c.fail == "chunk" {
		return errors.New("no")
	}
	return c.seen.Read(x, chunk)
}

func (c chunkCounter) Finish(_ context.Context, x *extension.Exchange, resp *dragoman.Response) error {
	if c.fail == "finish" {
		return errors.New("no")
	}
	last := &resp.Output[len(resp.Output)-1]
	last.Parts = append(last.Parts, &dragoman.Text{Text: fmt.Sprintf(" [%d]", c.seen.Sum(x))})
	return nil
}

func extensions(t testing.TB, list ...extension.Extension) provider.Extensions {
	t.Helper()
	set, err := extension.NewSet(list...)
	if err != nil {
		t.Fatal(err)
	}
	return provider.Extensions{Set: set}
}

func TestX3_ExtensionsReadChunksAndFinish(t *testing.T) {
	each(t, func(t *testing.T, c dialect.Codec) {
		yes := respond(textResponse("Yes."))
		model := serve(t, c, yes, yes).client(&provider.Client{Extensions: extensions(t, newCounter())})
		whole, err := model.Generate(t.Context(), newRequest())
		if err != nil || whole.Text() != "Yes. [1]" {
			t.Errorf("%v: %q", err, whole.Text())
		}
		streamed, err := dragoman.Collect(model.Stream(t.Context(), newRequest()))
		if err != nil || !strings.HasPrefix(streamed.Text(), "Yes. [") || strings.Contains(streamed.Text(), "[0]") {
			t.Errorf("%v: %q", err, streamed.Text())
		}
	})
}

func TestX3_FailedExtensionIsNamed(t *testing.T) {
	for _, fail := range []string{"prepare", "chunk", "finish"} {
		c := newCounter()
		c.fail = fail
		yes := respond(textResponse("Yes."))
		model := serve(t, openaichat.Codec{}, yes, yes).client(&provider.Client{Extensions: extensions(t, c)})
		var whose *extension.Error
		if _, err := model.Generate(t.Context(), newRequest()); !errors.As(err, &whose) || whose.Extension != "counter" {
			t.Errorf("%s: %v", fail, err)
		}
		if _, err := dragoman.Collect(model.Stream(t.Context(), newRequest())); !errors.As(err, &whose) {
			t.Errorf("%s, as a stream: %v", fail, err)
		}
	}
}

func TestX4_RetryRestartsAccumulation(t *testing.T) {
	var tries atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n")
		if tries.Add(1) == 1 {
			fmt.Fprint(w, "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\",\"code\":503}}\n\n")
			return
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	model := provider.OnClock(eagerClock{newClock()}, &provider.Client{BaseURL: server.URL, Model: "m", Extensions: extensions(t, newCounter()), Timeouts: unboundedPhases})
	resp, err := dragoman.Collect(model.Stream(t.Context(), &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("coat?")}}))
	if err != nil || tries.Load() != 2 || resp.Text() != "Yes. [2]" {
		t.Errorf("%v after %d attempts: %q", err, tries.Load(), resp.Text())
	}
}

func TestX7_ServerExtensionsAdaptTheRequest(t *testing.T) {
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	ext := extensions(t, servers.All()...)
	ext.Config = map[string]json.RawMessage{"deepseek": json.RawMessage(`{"thinking":"disabled"}`)}
	model := &provider.Client{Name: "work", Server: "deepseek", BaseURL: server.URL, Model: "deepseek-chat", Extensions: ext}
	req := &dragoman.Request{
		Messages:        []dragoman.Message{{Role: dragoman.RoleDeveloper, Parts: []dragoman.Part{&dragoman.Text{Text: "be brief"}}}, dragoman.UserText("coat?")},
		MaxOutputTokens: new(int64(9)),
	}
	if _, err := model.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"role":"system"`, `"max_tokens":9`, `"thinking":{"type":"disabled"}`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	model.Extensions.Switches.On = []string{"no such extension"}
	if _, err := model.Generate(t.Context(), req); !errors.Is(err, extension.ErrExtensions) {
		t.Errorf("%v", err)
	}
}

// The size of a third-party extension is a promise: the example has a setting, a new field of the
// stream, a mapping into the message, and a tool format with its adapter.
func TestX3_ThirdPartyExtensionFitsSixtyLines(t *testing.T) {
	src, err := os.ReadFile("example_extension_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, from, begins := strings.Cut(string(src), "// acme is an extension")
	code, _, ends := strings.Cut(from, "// An extension adapts requests")
	if lines := strings.Count(code, "\n"); !begins || !ends || lines >= 60 || !strings.Contains(code, "Adapt(") || !strings.Contains(code, "Decorate(") {
		t.Errorf("it has %d lines", lines)
	}
}
