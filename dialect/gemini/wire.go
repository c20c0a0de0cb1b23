package gemini

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing"
)

// Wire describes the API: paths, headers, framing, and the places of its messages.
func (c Codec) Wire() *wire.Wire {
	if c.Array {
		return &describedArray
	}
	return &described
}

// messagesAt locates the messages of a request.
var messagesAt = wirekit.Conversation{Field: "contents"}

const keyHeader = "X-Goog-Api-Key"

var (
	described      = describe(framing.SSE, framing.JSONArray)
	describedArray = describe(framing.JSONArray, framing.SSE)
)

func describe(own, other framing.Framing) wire.Wire {
	return wire.Wire{
		Names: []string{"gemini"},
		Body: wire.Body{
			Messages: messagesAt.Field, Tools: "/tools", ToolSettings: []string{"/toolConfig/functionCallingConfig"}, WrapTool: wrapTool,
			Response: "/candidates/0/content", Chunk: []string{"/candidates/0/content"},
			Roles: []string{"user", "model"},
		},
		Endpoint: wire.Endpoint{
			BaseURL: "https://generativelanguage.googleapis.com", Vendor: "gemini",
			Path: "/v1beta/models/{model}:generateContent", StreamPath: "/v1beta/models/{model}:streamGenerateContent?alt=sse",
			ModelPath: modelPath, SameModel: sameModel,
			Count: ":countTokens", CountField: "totalTokens", CountBody: `{"totalTokens":%d}`, Counted: counted,
		},
		Providers: []wire.Provider{
			{
				Names: []string{"gemini", "google"}, KeyEnv: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
				KeyHeader: keyHeader, BaseEnv: []string{"GOOGLE_GEMINI_BASE_URL"},
			},
			{Names: []string{"vertex"}, KeyEnv: []string{"GOOGLE_OAUTH_ACCESS_TOKEN"}, AccessToken: true, Place: &vertex},
		},
		Headers: wire.Headers{
			Forwarded:    []string{"X-Goog-Api-Client", "X-Goog-Fieldmask", "X-Goog-Request-Params", "X-Goog-Request-Reason", "X-Goog-User-Project", "X-Server-Timeout"},
			StatusInBody: true,
			Key:          keyHeader, KeyParameter: "key",
		},
		Stream: wire.Stream{
			Framing: own, OtherFraming: other,
			HasContent: hasContent,
			// No event marks the end of the stream.
			End:   wire.End{Field: wire.NewField("finishReason"), Path: []any{"candidates", 0}, Content: true},
			Usage: wire.NewField("usageMetadata"),
		},
		Serving: wire.Serving{
			Routes: routes(),
			Owns: func(method, path string) bool {
				return strings.HasPrefix(path, "/v1beta") || strings.HasPrefix(path, "/v1/projects/") ||
					strings.HasPrefix(path, "/v1/models/") && strings.Contains(path, ":") && method == "POST"
			},
			Models: &wire.Models{Path: "/v1beta/models", One: true, List: listModels, Show: showModel},
		},
		Signs: signs,
		Simulator: wire.Simulator{
			Faults: strings.Fields("c15 c18 c27 c28 c29 c30 c31 c36 c38 c41"),
			Text:   wire.Fragment{Path: []any{"candidates", 0, "content", "parts", 0}, Field: "text"},
			Blank:  []wire.Blank{{Data: `{}`}, {Data: `{"candidates":[]}`}},
		},
	}
}

// vertex describes where a model is on Google Cloud: project and location.
var vertex = wire.Place{
	Settings: []wire.PlaceSetting{
		{Name: "project", Env: []string{"GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"}},
		{Name: "location", Env: []string{"GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION"}},
	},
	Path: "/models/{model}:generateContent", StreamPath: "/models/{model}:streamGenerateContent?alt=sse",
	BaseURL: func(host string, value func(string) string) (base, missing string) {
		project, location := value("project"), value("location")
		switch {
		case host != "":
		case location == "" || location == "global":
			location, host = "global", "https://aiplatform.googleapis.com"
		default:
			host = "https://" + url.PathEscape(location) + "-aiplatform.googleapis.com"
		}
		if project == "" {
			missing = "project"
		}
		return strings.TrimRight(host, "/") + "/v1/projects/" + url.PathEscape(project) + "/locations/" + url.PathEscape(location) + "/publishers/google", missing
	},
}

// routes returns the paths of the Gemini API and of Vertex. The AI SDK sends a
// model name with a slash as one with its kind in front ("tunedModels/mine").
func routes() (out []wire.Route) {
	for _, root := range []string{"/v1beta/models/", "/v1beta/", "/v1/models/", "/v1/projects/", "/v1beta1/projects/"} {
		out = append(out, wire.Route{Path: root + "{rest...}", Read: readURL})
	}
	return out
}

// readURL reads /…/models/{model}:{method}.
func readURL(path, rest string, query url.Values) (wire.Call, bool) {
	if i := strings.LastIndex(rest, "/models/"); i >= 0 && strings.Contains(path, "/projects/") {
		rest = rest[i+len("/models/"):]
	}
	i := strings.LastIndexByte(rest, ':')
	if i < 0 {
		return wire.Call{}, false
	}
	c := wire.Call{Codec: Codec{}, InURL: true, Model: rest[:i]}
	switch rest[i+1:] {
	case "generateContent":
	case "streamGenerateContent":
		c.Codec, c.Stream = Codec{Array: query.Get("alt") != "sse"}, true
	case "countTokens":
		c.Count = true
	default:
		return wire.Call{}, false
	}
	return c, true
}

// modelPath removes the kind from a model name: models/… is the default,
// tunedModels/… is part of the path.
func modelPath(model, path string) (string, string) {
	model = strings.TrimPrefix(model, "models/")
	if kind, rest, ok := strings.Cut(model, "/"); ok && kind == "tunedModels" {
		return rest, strings.Replace(path, "models/{model}", kind+"/{model}", 1)
	}
	return model, path
}

// counted returns the request whose tokens are counted: the body itself, or a
// field of it.
func counted(body []byte) []byte {
	var outer struct {
		Request json.RawMessage `json:"generateContentRequest"`
	}
	if json.Unmarshal(body, &outer) == nil && len(outer.Request) > 0 && outer.Request[0] == '{' {
		return outer.Request
	}
	return body
}

// wrapTool wraps a function declaration in a tool object.
func wrapTool(tool json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(tool, &m) == nil && m["name"] != nil {
		return json.RawMessage(`{"functionDeclarations":[` + string(tool) + `]}`)
	}
	return tool
}

// model is a model in the list of the Gemini API.
type model struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	InputLimit  int64    `json:"inputTokenLimit,omitempty"`
	Methods     []string `json:"supportedGenerationMethods"`
}

func newModel(m wire.Model) model {
	return model{
		Name: "models/" + m.Name, DisplayName: m.Name, InputLimit: m.Context,
		Methods: []string{"generateContent", "streamGenerateContent", "countTokens"},
	}
}

func showModel(m wire.Model) any { return newModel(m) }

func listModels(all []wire.Model) any {
	return struct {
		Models []model `json:"models"`
	}{wire.Each(all, newModel)}
}

var signs = wire.Signs{
	Rank: 4,
	Response: []wire.Sign{
		wire.HasField(20, "candidates", "promptFeedback"),
		{Rank: 80, Because: `its "error" has a status`, Holds: func(m wire.Object) bool {
			return m.In("error").IsText("status") && m.In("error").Has("message")
		}},
	},
	Stream: []wire.Sign{wire.HasField(10, "candidates", "promptFeedback")},
	Tool: []wire.Sign{
		wire.HasField(50, "functionDeclarations", "function_declarations", "parametersJsonSchema"),
		{Rank: 100, Because: `it has a name and "parameters"`, Holds: func(m wire.Object) bool {
			return m.Has("name") && m.Has("parameters") && !m.Has("type", "role")
		}},
	},
	Request: [4][]wire.Sign{{
		wire.HasField(10, "contents"),
		{Rank: 20, Because: `it has a "generationConfig"`, Holds: func(m wire.Object) bool {
			return m.Has("generationConfig", "generation_config", "systemInstruction", "system_instruction") && !m.Has("messages", "contents")
		}},
	}},
	Messages: [3][]wire.Sign{{{Rank: 20, Because: `it has "parts"`, Holds: func(m wire.Object) bool {
		return wire.Any(m.List("messages"), func(m wire.Object) bool { return m.Has("parts") })
	}}}},
}

// sameModel returns the name with the kind prefix added or removed.
func sameModel(model string) []string {
	if plain, ok := strings.CutPrefix(model, "models/"); ok {
		return []string{plain}
	}
	return []string{"models/" + model}
}
