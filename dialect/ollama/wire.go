package ollama

import (
	"net/url"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing"
)

// Wire describes the API: paths, headers, framing, and the location of its messages.
func (Codec) Wire() *wire.Wire { return &described }

// messagesAt describes where a request holds its messages.
var messagesAt = wirekit.Conversation{Field: "messages", Continues: func(req *dragoman.Request) bool {
	return req.Native.Current(name, req.Fingerprint) // a request without messages loads the model
}}

// version is the version of Ollama whose API is served. Clients compare it: an editor may
// require 0.6.4 or newer, and rejects anything but three numbers.
const version = "0.34.4"

// defaultTag is the tag of a model name without one.
const defaultTag = ":latest"

var described = describe(Codec{}.load, Codec{}.loaded)

func describe(load func([]byte) (string, bool), loaded func(model, created, reason string) []byte) wire.Wire {
	return wire.Wire{
		Names: []string{"ollama"},
		Body: wire.Body{
			Messages: messagesAt.Field, Tools: "/tools", Response: "message", Chunk: []string{"message"},
			Roles:            []string{"user", "assistant", "system", "developer", "tool"},
			AnyRole:          true, // models may define roles
			StreamsByDefault: true,
			DefaultTag:       defaultTag,
			Empty:            load,
			Prepared:         loaded,
		},
		Endpoint: wire.Endpoint{BaseURL: "http://127.0.0.1:11434", Path: "/api/chat", Vendor: "ollama", SameModel: sameModel},
		Providers: []wire.Provider{{
			Names: []string{"ollama"}, KeyEnv: []string{"OLLAMA_API_KEY"}, BaseEnv: []string{"OLLAMA_HOST"}, CompleteBase: completeBase, Keyless: true,
		}},
		Stream: wire.Stream{
			Framing:    framing.NDJSON,
			HasContent: hasContent,
			End:        wire.End{Field: wire.NewField("done"), FieldIsLast: true},
			Usage:      wire.NewField("eval_count"),
		},
		Serving: wire.Serving{
			Routes: []wire.Route{{Path: "/api/chat"}, {Path: "/api/generate", Call: wire.Call{Codec: generateCodec{}}}},
			Owns:   func(_, path string) bool { return strings.HasPrefix(path, "/api/") },
			Models: &wire.Models{
				Path: "/api/tags", List: listModels, Running: "/api/ps", ShowPath: "/api/show", Details: showModel,
				VersionPath: "/api/version", Version: struct {
					Version string `json:"version"`
				}{version},
			},
		},
		ToolTypes: "function",
		StopWords: map[dragoman.StopReason]string{dragoman.StopEnd: "stop", dragoman.StopToolCalls: "stop", dragoman.StopLength: "length"},
		Signs:     signs,
		Simulator: wire.Simulator{
			Faults: strings.Fields("c18 c32 c41"),
			Text:   wire.Fragment{Path: []any{"message"}, Field: "content"},
			Blank: []wire.Blank{
				{Data: `{"model":"","message":{"role":"assistant","content":""},"done":false}`},
				{Data: `{"model":"","message":{"role":"assistant","content":""},"done":false}`},
			},
		},
	}
}

// completeBase reads OLLAMA_HOST, which may lack the scheme, the port or the host.
func completeBase(s string) string {
	if s == "" || strings.Contains(s, "://") {
		return s
	}
	host, path, _ := strings.Cut(s, "/")
	name, port := host, "11434"
	if i := strings.LastIndexByte(host, ':'); i >= 0 && (strings.Count(host, ":") == 1 || strings.HasSuffix(host[:i], "]")) {
		name, port = host[:i], host[i+1:]
	}
	name = strings.Trim(name, "[]")
	switch {
	case name == "" || name == "0.0.0.0" || name == "::": // a listen address; connect to the local host
		name = "127.0.0.1"
	case strings.Contains(name, ":"):
		name = "[" + name + "]"
	}
	u := url.URL{Scheme: "http", Host: name + ":" + port, Path: path}
	return u.String()
}

var messageSigns = []wire.Sign{
	wire.TextContent,
	{Rank: 90, Because: "its calls have objects for arguments", Holds: func(m wire.Object) bool {
		return wire.Any(wire.Calls(m), func(c wire.Object) bool { return wire.ArgumentsStart(c, '{') })
	}},
	{Rank: 110, Because: `its messages have "images" or a "tool_name"`, Holds: func(m wire.Object) bool {
		return wire.Any(m.List("messages"), func(m wire.Object) bool { return m.Has("tool_name") || m.IsScalars("images") })
	}},
	wire.ToolMessages,
}

var signs = wire.Signs{
	Rank:  2,
	Model: func(name string) bool { return strings.Contains(name, ":") && !strings.Contains(name, "/") },
	Response: []wire.Sign{
		{Rank: 50, Because: `it has "message" and "done"`, Holds: func(m wire.Object) bool { return m.Has("message") && m.Has("done") }},
		{Rank: 110, Because: `its "error" is a text`, Holds: func(m wire.Object) bool { return m.IsText("error") && !wire.IsRequest(m) }},
	},
	Stream: []wire.Sign{{Rank: 40, Because: `its lines have "message" and "done"`, Holds: func(m wire.Object) bool {
		return m.Has("done") && m.Has("message", "model")
	}}},
	Tool: []wire.Sign{wire.FunctionTool},
	Request: [4][]wire.Sign{
		{wire.HasMessages},
		append([]wire.Sign{wire.HasFunctions}, messageSigns...),
		{wire.Sign{Rank: 70, Because: `it has "options", "keep_alive", "think" or "format"`, Holds: func(m wire.Object) bool {
			return m.Has("options", "keep_alive", "think", "format")
		}}},
		{wire.SystemFirst},
	},
	Messages: [3][]wire.Sign{{wire.RolesAndContent}, messageSigns, {wire.SystemMessage}},
}

type details struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Size         string   `json:"parameter_size"`
	Quantization string   `json:"quantization_level"`
}

type model struct {
	Name         string   `json:"name"`
	Model        string   `json:"model"`
	Modified     string   `json:"modified_at"`
	Size         int64    `json:"size"`
	Digest       string   `json:"digest"`
	Details      details  `json:"details"`
	Capabilities []string `json:"capabilities"`
}

func newModel(m wire.Model) model {
	return model{
		Name: m.Name, Model: m.Name, Modified: m.Date(), Digest: strings.Repeat("0", 64),
		Details: detailsOf(m), Capabilities: capabilities(m),
	}
}

func detailsOf(m wire.Model) details {
	return details{Format: m.Owner, Family: m.Owner, Families: []string{m.Owner}, Size: "0B", Quantization: "none"}
}

// capabilities returns the capabilities of a model in Ollama's terms. An unknown model has
// all of them, because clients hide what is not listed.
func capabilities(m wire.Model) []string {
	out := []string{"completion"}
	for _, c := range []struct {
		name string
		not  bool
	}{{"tools", m.NoTools}, {"thinking", m.NoThinking}, {"vision", m.NoVision}} {
		if !c.not {
			out = append(out, c.name)
		}
	}
	return out
}

func listModels(all []wire.Model) any {
	return struct {
		Models []model `json:"models"`
	}{wire.Each(all, newModel)}
}

// showModel returns the details of a model. The ollama command expects each count to be a
// number, so an unknown count is 0.
func showModel(m wire.Model) any {
	return struct {
		License      string         `json:"license"`
		Modelfile    string         `json:"modelfile"`
		Parameters   string         `json:"parameters"`
		Template     string         `json:"template"`
		Details      details        `json:"details"`
		Info         map[string]any `json:"model_info"`
		Capabilities []string       `json:"capabilities"`
		Modified     string         `json:"modified_at"`
	}{
		Modelfile: "FROM " + m.Name + "\n", Template: "{{ .Prompt }}",
		Details: detailsOf(m), Capabilities: capabilities(m), Modified: m.Date(),
		Info: map[string]any{
			"general.architecture":        m.Owner,
			"general.basename":            m.Name,
			"general.parameter_count":     0,
			m.Owner + ".context_length":   m.Context,
			m.Owner + ".embedding_length": 0,
		},
	}
}

// sameModel returns the other forms of a name: servers ignore case, and the tag "latest"
// is the default.
func sameModel(model string) []string {
	plain := strings.TrimSuffix(strings.ToLower(model), defaultTag)
	names := []string{plain}
	if !strings.Contains(plain[strings.LastIndexByte(plain, '/')+1:], ":") {
		names = append(names, plain+defaultTag)
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == model })
}
