package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// acme is an extension for an OpenAI Chat server that has a setting of its own, streams a mood in
// addition to the text, and has its own tool format.
type acme struct {
	*extension.Accumulator[extension.Text]
}

func newAcme() acme {
	return acme{&extension.Accumulator[extension.Text]{
		Path: "/message/mood", Fold: extension.Append, Fragments: true,
		Extract: func(chunk json.RawMessage) (piece extension.Text, found bool, err error) {
			var o extension.Object
			if err = json.Unmarshal(chunk, &o); err == nil {
				found, err = o.Read("/choices/0/delta/mood", &piece)
			}
			return piece, found, err
		},
	}}
}

func (acme) Info() extension.Info {
	return extension.Info{Name: "acme", Requires: []extension.Tag{"server:acme"}}
}

func (acme) Decorate(_ context.Context, x *extension.Exchange) error {
	var settings struct{ Moody bool }
	if found, err := x.Config(&settings); !found || err != nil {
		return err
	}
	return x.Payload.Set("moody", settings.Moody)
}

func (a acme) Finish(_ context.Context, x *extension.Exchange, resp *dragoman.Response) error {
	last := &resp.Output[len(resp.Output)-1]
	last.Parts = append(last.Parts, &dragoman.Text{Text: " (" + string(a.Sum(x)) + ")"})
	return nil
}

func (acme) Contribute(*extension.Exchange) []dragoman.Contribution {
	return []dragoman.Contribution{{Schemas: []dragoman.SchemaAccessor{acmeTool{}}, Adapters: []dragoman.Adapter{acmeTool{}}}}
}

// acmeTool is {"does": name}. It reads such tools and writes them for Chat.
type acmeTool struct{ Does string }

func (acmeTool) Format() dragoman.Format { return "acme.tool" }
func (acmeTool) Kind() string            { return "schema" }
func (acmeTool) From() dragoman.Format   { return "acme.tool" }
func (acmeTool) To() dragoman.Format     { return "openai.chat_completions.function" }

func (t acmeTool) InspectSchema(obj json.RawMessage) ([]dragoman.ToolSpec, dragoman.Report, error) {
	err := json.Unmarshal(obj, &t)
	return []dragoman.ToolSpec{{Name: t.Does}}, dragoman.Report{}, err
}

func (t acmeTool) Adapt(in dragoman.AdapterInput) (json.RawMessage, dragoman.Report, error) {
	err := json.Unmarshal(in.Native, &t)
	return json.RawMessage(fmt.Sprintf(`{"type":"function","function":{"name":%q,"acme":true}}`, t.Does)), dragoman.Report{}, err
}

// An extension adapts a server without a change to this module: it adds a setting, accumulates a
// new field of the stream, maps it into the message, and contributes a tool format with its
// adapter.
func Example_extension() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent, _ := extension.NewObject(body)
		fmt.Println("sent:", string(sent.Get("moody")), string(sent.Get("tools")))
		for _, delta := range []string{`{"content":"Yes."}`, `{"mood":"quite "}`, `{"mood":"sure"}`} {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()

	set, err := extension.NewSet(newAcme())
	if err != nil {
		fmt.Println(err)
		return
	}
	model := &provider.Client{Name: "acme", BaseURL: server.URL, Model: "m", Extensions: provider.Extensions{
		Set: set, Config: map[string]json.RawMessage{"acme": json.RawMessage(`{"moody":true}`)},
		Patches: func(p extension.Patch) { fmt.Println("patch:", p.Path, string(p.Value)) },
	}}
	resp, err := dragoman.Collect(model.Stream(context.Background(), &dragoman.Request{
		Messages: []dragoman.Message{dragoman.UserText("Do I need a coat?")},
		Tools:    []dragoman.ToolSpec{{Source: &dragoman.ToolSource{Format: "acme.tool", JSON: json.RawMessage(`{"does":"look"}`)}}},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Text())
	// Output:
	// sent: true [{"type":"function","function":{"name":"look","acme":true}}]
	// patch: /message/mood "quite "
	// patch: /message/mood "sure"
	// Yes. (quite sure)
}
