//go:build linux

package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bytedance/sonic"
	bifrostanthropic "github.com/maximhq/bifrost/core/providers/anthropic"
	bifrostopenai "github.com/maximhq/bifrost/core/providers/openai"
	bifrostutils "github.com/maximhq/bifrost/core/providers/utils"
	"github.com/maximhq/bifrost/core/schemas"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// translation is a task for both sides: bytes in, bytes out as they arrive.
type translation struct {
	name         string
	in           []byte
	ours, theirs func(io.Writer, []byte) error
	// fail is the minimum speed of ours relative to theirs; below it, the test fails.
	fail float64
	// meaning returns the meaning of the output, for comparison.
	meaning func(testing.TB, []byte) string
}

func translations(tb testing.TB) []translation {
	tb.Helper()
	var chat openaichat.Codec
	large, err := chat.EncodeRequest(benchdata.Request(), dialect.EncodeOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	answer, err := anthropic.Codec{}.EncodeResponse(collect(tb, dialectname.Anthropic, stream(dialectname.Anthropic)), dialect.EncodeOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	var schemas interop.SchemaCache
	ours := atOnce(func(b []byte) ([]byte, error) { return ourRequest(b, &schemas) })
	return []translation{
		{"request, Chat to Anthropic: a tool and two messages", request(dialectname.OpenAIChat, "anthropic/claude-sonnet-4-5"), ours, atOnce(bifrostRequest), 1.2, requestMeaning},
		{"request, Chat to Anthropic: 100 tools and 200 messages", bytes.Replace(large.Body, []byte(`{`), []byte(`{"model":"anthropic/claude-sonnet-4-5",`), 1), ours, atOnce(bifrostRequest), 4, requestMeaning},
		{"whole response, Anthropic to Chat: a call", answer.Body, atOnce(ourResponse), atOnce(bifrostResponse), 0.7, responseMeaning},
		{
			fmt.Sprintf("stream, Anthropic to Chat: %d argument deltas", benchdata.StreamChunks), benchdata.ToolStream(dialectname.Anthropic), ourStream, bifrostStream, 2.8,
			func(tb testing.TB, b []byte) string { return callsOf(collect(tb, dialectname.OpenAIChat, b)) },
		},
	}
}

// atOnce adapts a function that returns its whole result.
func atOnce(f func([]byte) ([]byte, error)) func(io.Writer, []byte) error {
	return func(w io.Writer, b []byte) error {
		out, err := f(b)
		if err == nil {
			_, err = w.Write(out)
		}
		return err
	}
}

// ourRequest does the same work on the conversation as the gateway and its provider.
func ourRequest(body []byte, schemas *interop.SchemaCache) ([]byte, error) {
	req, _, err := openaichat.Codec{}.DecodeRequest(body, dialect.DecodeOptions{})
	if err != nil {
		return nil, err
	}
	codec := anthropic.Codec{}
	target := targets.Target{Dialect: dialectname.Anthropic, Model: req.Model}
	req, _, err = history.Normalize(req, history.Options{Target: target, Limits: codec.Limits()})
	if err != nil {
		return nil, err
	}
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{Target: target, Schemas: schemas})
	return enc.Body, err
}

func ourResponse(body []byte) ([]byte, error) {
	resp, _, err := anthropic.Codec{}.DecodeResponse(body, dialect.DecodeOptions{NoNative: true})
	if err != nil {
		return nil, err
	}
	enc, err := openaichat.Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
	return enc.Body, err
}

func ourStream(w io.Writer, body []byte) error {
	return dialect.Translate(w, openaichat.Codec{}.NewStreamEncoder(dialect.EncodeOptions{StreamUsage: true}),
		anthropic.Codec{}.NewStreamDecoder(dialect.DecodeOptions{NoNative: true, DeltasOnly: true}), bytes.NewReader(body))
}

func bifrostContext() *schemas.BifrostContext {
	return schemas.NewBifrostContext(context.Background(), schemas.NoDeadline)
}

func bifrostRequest(body []byte) ([]byte, error) {
	ctx := bifrostContext()
	var req bifrostopenai.OpenAIChatRequest
	if err := sonic.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	out, failed := bifrostanthropic.BuildAnthropicChatRequestBody(ctx, req.ToBifrostChatRequest(ctx), bifrostanthropic.AnthropicRequestBuildConfig{
		Provider: schemas.Anthropic, IsStreaming: req.Stream != nil && *req.Stream,
	})
	if failed != nil {
		return nil, fmt.Errorf("%+v", failed.Error)
	}
	return out, nil
}

func bifrostResponse(body []byte) ([]byte, error) {
	response := bifrostanthropic.AcquireAnthropicMessageResponse()
	defer bifrostanthropic.ReleaseAnthropicMessageResponse(response)
	if _, _, failed := bifrostutils.HandleProviderResponse(body, response, nil, false, false); failed != nil {
		return nil, fmt.Errorf("%+v", failed.Error)
	}
	return sonic.Marshal(response.ToBifrostChatResponse(bifrostContext()))
}

// bifrostStream is the loop of bifrost's Anthropic provider, with the frames of its server.
func bifrostStream(w io.Writer, body []byte) error {
	ctx := bifrostContext()
	var out []byte
	write := func(r *schemas.BifrostChatResponse) error {
		chunk, err := sonic.Marshal(r)
		if err != nil {
			return err
		}
		out = append(append(append(out[:0], "data: "...), chunk...), "\n\n"...)
		_, err = w.Write(out)
		return err
	}
	reader := bifrostutils.GetSSEEventReader(ctx, bytes.NewReader(body))
	state := bifrostanthropic.NewAnthropicStreamState()
	id, model, finish := "", "", ""
	var usage schemas.BifrostLLMUsage
	for index := 0; ; index++ {
		_, data, err := reader.ReadEvent()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		var event bifrostanthropic.AnthropicStreamEvent
		if err := sonic.Unmarshal(data, &event); err != nil {
			return err
		}
		if event.Message != nil {
			id, model = event.Message.ID, event.Message.Model
		}
		if event.Usage != nil {
			usage.CompletionTokens = max(usage.CompletionTokens, event.Usage.OutputTokens)
		}
		if event.Delta != nil && event.Delta.StopReason != nil {
			finish = bifrostanthropic.ConvertAnthropicFinishReasonToBifrost(*event.Delta.StopReason)
		}
		response, failed, last := event.ToBifrostChatCompletionStream(ctx, "", state)
		if failed != nil {
			return fmt.Errorf("%+v", failed.Error)
		}
		if response != nil {
			response.ExtraFields = schemas.BifrostResponseExtraFields{ChunkIndex: index}
			response.ID = id
			if err := write(response); err != nil {
				return err
			}
		}
		if last {
			break
		}
	}
	if err := write(bifrostutils.CreateBifrostChatCompletionChunkResponse(id, &usage, &finish, 0, model, 0)); err != nil {
		return err
	}
	_, err := io.WriteString(w, "data: [DONE]\n\n")
	return err
}

// requestMeaning returns the meaning of an Anthropic request: the number of tools and messages, and
// all text.
func requestMeaning(tb testing.TB, body []byte) string {
	tb.Helper()
	req, _, err := anthropic.Codec{}.DecodeRequest(body, dialect.DecodeOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d tools", len(req.Tools))
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				out.WriteString(" " + p.Text)
			case *dragoman.ToolCall:
				out.WriteString(" call " + p.Name)
			case *dragoman.ToolResult:
				out.WriteString(" result " + p.CallID)
			}
		}
	}
	return out.String()
}

func responseMeaning(tb testing.TB, body []byte) string {
	tb.Helper()
	resp, _, err := openaichat.Codec{}.DecodeResponse(body, dialect.DecodeOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return callsOf(resp)
}

// TestPeersTranslateTheSame checks that both sides do the same work with the same result.
func TestPeersTranslateTheSame(t *testing.T) {
	for _, w := range translations(t) {
		var own, other bytes.Buffer
		if err := errors.Join(w.ours(&own, w.in), w.theirs(&other, w.in)); err != nil {
			t.Fatal(w.name, err)
		}
		if a, b := w.meaning(t, own.Bytes()), w.meaning(t, other.Bytes()); a != b || len(a) < 10 {
			t.Errorf("%s: our result means\n%.600s\nbifrost's means\n%.600s", w.name, a, b)
		}
	}
}

// own returns the CPU time of this process, garbage collection included.
func own(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost is the cost of a translation.
type cost struct{ cpu, bytes, allocs float64 }

// compare runs both sides alternately and returns the best result of each: other load can only
// add.
func (w translation) compare(tb testing.TB) (ours, theirs cost) {
	tb.Helper()
	n := max(20, 4_000_000/len(w.in))
	best := [2]cost{}
	for round := range *rounds {
		for i, f := range []func(io.Writer, []byte) error{w.ours, w.theirs} {
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := own(tb)
			for range n {
				if err := f(io.Discard, w.in); err != nil {
					tb.Fatal(err)
				}
			}
			c := cost{float64(own(tb)-start) / float64(n), 0, 0}
			runtime.ReadMemStats(&after)
			c.bytes, c.allocs = float64(after.TotalAlloc-before.TotalAlloc)/float64(n), float64(after.Mallocs-before.Mallocs)/float64(n)
			if round == 0 {
				best[i] = c
			}
			best[i] = cost{min(best[i].cpu, c.cpu), min(best[i].bytes, c.bytes), min(best[i].allocs, c.allocs)}
		}
	}
	return best[0], best[1]
}

// BenchmarkTranslation is for profiling.
func BenchmarkTranslation(b *testing.B) {
	for _, w := range translations(b) {
		for side, f := range map[string]func(io.Writer, []byte) error{"ours": w.ours, "theirs": w.theirs} {
			b.Run(w.name+"/"+side, func(b *testing.B) {
				b.ReportAllocs()
				start := own(b)
				for b.Loop() {
					if err := f(io.Discard, w.in); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(own(b)-start)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
