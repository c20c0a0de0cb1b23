//go:build unix

package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"charm.land/fantasy"
	fantasyopenai "charm.land/fantasy/providers/openai"
	einoopenai "github.com/cloudwego/eino-ext/components/model/openai"
	einoadk "github.com/cloudwego/eino/adk"
	einotool "github.com/cloudwego/eino/components/tool"
	einoutils "github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	einoschema "github.com/cloudwego/eino/schema"
	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai"
	langagents "github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	langopenai "github.com/tmc/langchaingo/llms/openai"
	langtools "github.com/tmc/langchaingo/tools"
	adkagent "google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	adkmodel "google.golang.org/adk/v2/model"
	adkgemini "google.golang.org/adk/v2/model/gemini"
	"google.golang.org/adk/v2/model/openaimodel"
	"google.golang.org/adk/v2/runner"
	adksession "google.golang.org/adk/v2/session"
	adktool "google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect"
	dragongemini "github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// Question and Forecast are the input and output of the tool.
type Question struct {
	Place string `json:"place"`
	Days  int    `json:"days"`
}

type Forecast struct {
	Place   string `json:"place"`
	Sky     string `json:"sky"`
	Celsius int    `json:"celsius"`
}

// counter is the tool. It counts the valid calls.
type counter struct{ calls int }

func (c *counter) forecast(q Question) (Forecast, error) {
	if !strings.HasPrefix(q.Place, place) || q.Days != 3 {
		return Forecast{}, fmt.Errorf("invalid question %+v", q)
	}
	c.calls++
	return Forecast{Place: q.Place, Sky: "snow", Celsius: -4}, nil
}

// contender is an agent, ready to do the task.
type contender struct {
	name string
	wire *wire
	// validates describes how arguments are checked before the tool gets them.
	validates string
	ours      bool
	// leads: the agent is known to need less CPU than ours; the document has the reasons.
	leads bool
	// make returns the task: one run, which ends with the model's answer.
	make func(tb testing.TB, w *wire, url string, c *counter) func(context.Context) (string, error)
}

const (
	bySchema   = "by the schema"
	byRequired = "required fields"
	decoding   = "none: decoding only"
	byHand     = "none: the tool decodes"
)

var contenders = []contender{
	{"ours", &chat, bySchema, true, false, ours},
	{"ours, in a session", &chat, bySchema, true, false, oursStored},
	{"eino v0.9.13, adk", &chat, decoding, false, true, eino},
	{"eino v0.9.13, react", &chat, decoding, false, true, einoReact},
	{"genkit v1.4.0", &chat, bySchema, false, false, genkitAgent},
	{"fantasy v0.41.1", &chat, byRequired, false, false, fantasyAgent},
	{"langchaingo v0.1.14", &chat, byHand, false, false, langchain},

	{"ours", &responses, bySchema, true, false, ours},
	{"ours, in a session", &responses, bySchema, true, false, oursStored},
	{"adk v2.2.0", &responses, bySchema, false, false, adk},
	{"fantasy v0.41.1", &responses, byRequired, false, false, fantasyAgent},

	{"ours", &gemini, bySchema, true, false, ours},
	{"ours, in a session", &gemini, bySchema, true, false, oursStored},
	{"adk v2.2.0", &gemini, bySchema, false, false, adk},
}

// must returns a function that ends the test on an error.
func must[T any](tb testing.TB) func(T, error) T {
	return func(v T, err error) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

func codec(w *wire) dialect.Codec {
	switch w {
	case &responses:
		return openairesponses.Codec{}
	case &gemini:
		return dragongemini.Codec{}
	default:
		return openaichat.Codec{}
	}
}

func oursWith(w *wire, url string, c *counter, client *http.Client) agent.Agent {
	return agent.Agent{
		Model: &provider.Client{BaseURL: url + w.base, Model: w.model, Codec: codec(w), HTTP: client},
		Tools: []tool.Tool{tool.New(toolName, toolText, func(_ context.Context, q Question) (Forecast, error) { return c.forecast(q) })},
	}
}

func ours(_ testing.TB, w *wire, url string, c *counter) func(context.Context) (string, error) {
	a := oursWith(w, url, c, nil)
	return func(ctx context.Context) (string, error) {
		res, err := a.Run(ctx, prompt)
		if err != nil {
			return "", err
		}
		return res.Output, nil
	}
}

// oursStored stores the run in a session, with the journal of effects.
func oursStored(_ testing.TB, w *wire, url string, c *counter) func(context.Context) (string, error) {
	a := oursWith(w, url, c, nil)
	return func(ctx context.Context) (string, error) {
		s, err := session.Create(ctx, &session.Memory{}, session.Info{})
		if err != nil {
			return "", err
		}
		res, err := a.Run(ctx, prompt, agent.In(s))
		if err != nil {
			return "", err
		}
		return res.Output, nil
	}
}

// recorded returns the request bodies that our agent sends for the task.
func recorded(tb testing.TB, w *wire) (bodies [][]byte) {
	tb.Helper()
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
		answer := w.answer
		if turn := next(body); turn < turns {
			answer = w.call(turn)
		}
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(answer)), Request: r,
		}, nil
	})}
	res, err := oursWith(w, "http://127.0.0.1", &counter{}, client).Run(tb.Context(), prompt)
	if err != nil || res.Output != conclusion || len(bodies) != turns+1 {
		tb.Fatal(len(bodies), err)
	}
	return bodies
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func einoParts(tb testing.TB, w *wire, url string, c *counter) (*einoopenai.ChatModel, compose.ToolsNodeConfig) {
	tb.Helper()
	m := must[*einoopenai.ChatModel](tb)(einoopenai.NewChatModel(tb.Context(), &einoopenai.ChatModelConfig{APIKey: "key", BaseURL: url + w.base, Model: w.model}))
	t := must[einotool.InvokableTool](tb)(einoutils.InferTool(toolName, toolText, func(_ context.Context, q Question) (Forecast, error) { return c.forecast(q) }))
	return m, compose.ToolsNodeConfig{Tools: []einotool.BaseTool{t}}
}

// eino is the agent that the eino documentation starts with.
func eino(tb testing.TB, w *wire, url string, c *counter) func(context.Context) (string, error) {
	tb.Helper()
	m, tools := einoParts(tb, w, url, c)
	a := must[*einoadk.ChatModelAgent](tb)(einoadk.NewChatModelAgent(tb.Context(), &einoadk.ChatModelAgentConfig{
		Name: "agent", Description: "agent", Model: m, ToolsConfig: einoadk.ToolsConfig{ToolsNodeConfig: tools},
	}))
	r := einoadk.NewRunner(tb.Context(), einoadk.RunnerConfig{Agent: a})
	return func(ctx context.Context) (string, error) {
		var last string
		for events := r.Query(ctx, prompt); ; {
			ev, more := events.Next()
			switch {
			case !more:
				return last, nil
			case ev.Err != nil:
				return "", ev.Err
			case ev.Output != nil && ev.Output.MessageOutput != nil:
				msg, err := ev.Output.MessageOutput.GetMessage()
				if err != nil {
					return "", err
				}
				last = msg.Content
			}
		}
	}
}

// einoReact is the older eino agent, a bare graph.
func einoReact(tb testing.TB, w *wire, url string, c *counter) func(context.Context) (string, error) {
	tb.Helper()
	m, tools := einoParts(tb, w, url, c)
	a := must[*react.Agent](tb)(react.NewAgent(tb.Context(), &react.AgentConfig{ToolCallingModel: m, ToolsConfig: tools, MaxStep: 4 * turns}))
	return func(ctx context.Context) (string, error) {
		msg, err := a.Generate(ctx, []*einoschema.Message{einoschema.UserMessage(prompt)})
		if err != nil {
			return "", err
		}
		return msg.Content, nil
	}
}

func genkitAgent(tb testing.TB, w *wire, url string, c *counter) func(context.Context) (string, error) {
	tb.Helper()
	plugin := &compat_oai.OpenAICompatible{Provider: "loopback", APIKey: "key", BaseURL: url + w.base + "/"}
	g := genkit.Init(tb.Context(), genkit.WithPlugins(plugin))
	m := plugin.DefineModel("loopback", w.model, ai.ModelOptions{Supports: &compat_oai.Multimodal})
	t := genkit.DefineTool(g, toolName, toolText, func(_ *ai.ToolContext, q Question) (Forecast, error) { return c.forecast(q) })
	return func(ctx context.Context) (string, error) {
		return genkit.GenerateText(ctx, g, ai.WithModel(m), ai.WithPrompt(prompt), ai.WithTools(t), ai.WithMaxTurns(2*turns))
	}
}

func fantasyAgent(tb testing.TB, w *wire, url string, c *counter) func(context.Context) (string, error) {
	tb.Helper()
	opts := []fantasyopenai.Option{fantasyopenai.WithAPIKey("key"), fantasyopenai.WithBaseURL(url + w.base)}
	if w == &responses {
		opts = append(opts, fantasyopenai.WithUseResponsesAPI())
	}
	p := must[fantasy.Provider](tb)(fantasyopenai.New(opts...))
	m := must[fantasy.LanguageModel](tb)(p.LanguageModel(tb.Context(), w.model))
	a := fantasy.NewAgent(m, fantasy.WithStopConditions(fantasy.StepCountIs(2*turns)), fantasy.WithTools(
		fantasy.NewAgentTool(toolName, toolText, func(_ context.Context, q Question, _ fantasy.ToolCall) (fantasy.ToolResponse, error) {
			f, err := c.forecast(q)
			if err != nil {
				return fantasy.ToolResponse{}, err
			}
			text, err := json.Marshal(f)
			return fantasy.NewTextResponse(string(text)), err
		})))
	return func(ctx context.Context) (string, error) {
		res, err := a.Generate(ctx, fantasy.AgentCall{Prompt: prompt})
		if err != nil {
			return "", err
		}
		return res.Response.Content.Text(), nil
	}
}

// langTool decodes its arguments itself, because the framework passes only a string.
type langTool struct{ *counter }

func (langTool) Name() string        { return toolName }
func (langTool) Description() string { return toolText }

func (t langTool) Call(_ context.Context, input string) (string, error) {
	var q Question
	d := json.NewDecoder(strings.NewReader(input))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return "", err
	}
	f, err := t.forecast(q)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(f)
	return string(text), err
}

func langchain(tb testing.TB, w *wire, url string, c *counter) func(context.Context) (string, error) {
	tb.Helper()
	m := must[*langopenai.LLM](tb)(langopenai.New(langopenai.WithToken("key"), langopenai.WithBaseURL(url+w.base), langopenai.WithModel(w.model)))
	e := langagents.NewExecutor(langagents.NewOpenAIFunctionsAgent(m, []langtools.Tool{langTool{c}}), langagents.WithMaxIterations(2*turns))
	return func(ctx context.Context) (string, error) { return chains.Run(ctx, e, prompt) }
}

func adk(tb testing.TB, w *wire, url string, c *counter) func(context.Context) (string, error) {
	tb.Helper()
	t := must[adktool.Tool](tb)(functiontool.New(functiontool.Config{Name: toolName, Description: toolText},
		func(_ adkagent.Context, q Question) (Forecast, error) { return c.forecast(q) }))
	a := must[adkagent.Agent](tb)(llmagent.New(llmagent.Config{Name: "agent", Model: adkModel(tb, w, url), Tools: []adktool.Tool{t}}))
	sessions := adksession.InMemoryService()
	r := must[*runner.Runner](tb)(runner.New(runner.Config{AppName: "bench", Agent: a, SessionService: sessions, AutoCreateSession: true}))
	return func(ctx context.Context) (string, error) {
		var last strings.Builder
		for ev, err := range r.Run(ctx, "user", "session", genai.NewContentFromText(prompt, genai.RoleUser), adkagent.RunConfig{}) {
			if err != nil {
				return "", err
			}
			if ev.Content == nil {
				continue
			}
			last.Reset()
			for _, p := range ev.Content.Parts {
				last.WriteString(p.Text)
			}
		}
		// The next run starts with an empty session.
		return last.String(), sessions.Delete(ctx, &adksession.DeleteRequest{AppName: "bench", UserID: "user", SessionID: "session"})
	}
}

func adkModel(tb testing.TB, w *wire, url string) adkmodel.LLM {
	tb.Helper()
	if w == &gemini {
		return must[adkmodel.LLM](tb)(adkgemini.NewModel(tb.Context(), w.model, &genai.ClientConfig{
			APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url, APIVersion: "v1beta"},
		}))
	}
	return must[adkmodel.LLM](tb)(openaimodel.NewModel(tb.Context(), w.model, &openaimodel.ClientConfig{APIKey: "key", BaseURL: url + w.base}))
}

var errAnswer = errors.New("the agent did not complete the task")

// task returns a run that is checked: it must return the model's answer and call the tool once in
// every turn.
func (k contender) task(tb testing.TB, url string) func(context.Context) error {
	tb.Helper()
	c := &counter{}
	run := k.make(tb, k.wire, url, c)
	return func(ctx context.Context) error {
		c.calls = 0
		got, err := run(ctx)
		if err == nil && (got != conclusion || c.calls != turns) {
			err = fmt.Errorf("%w: %d calls, %q", errAnswer, c.calls, got)
		}
		return err
	}
}
