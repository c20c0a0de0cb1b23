// Extension adapts the client to a server that differs from its dialect: it sends a field that
// only this server knows, and reads one that only this server returns.
//
//	$ go run ./examples/extension
//	the server got region "eu"
//	cost: 0.0021
//	Hello.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// acme has two of the hooks that the comment of extension.Extension lists.
type acme struct{ onCost func(cost float64) }

func (acme) Info() extension.Info {
	return extension.Info{Name: "acme.cost", Requires: []extension.Tag{"server:acme"}}
}

// Decorate adds the region of the settings to the body of a request.
func (acme) Decorate(_ context.Context, x *extension.Exchange) error {
	var settings struct{ Region string }
	if found, err := x.Config(&settings); err != nil || !found {
		return err
	}
	return x.Payload.Set("region", settings.Region)
}

// ReadChunk reads the cost from the body of a response, or from a chunk of a stream.
func (a acme) ReadChunk(_ context.Context, _ *extension.Exchange, chunk json.RawMessage) error {
	var body struct{ Cost *float64 }
	if err := json.Unmarshal(chunk, &body); err != nil || body.Cost == nil {
		return err
	}
	a.onCost(*body.Cost)
	return nil
}

func main() {
	server := httptest.NewServer(http.HandlerFunc(serve))
	defer server.Close()
	config := &provider.Config{
		Extensions: []extension.Extension{acme{onCost: func(cost float64) { fmt.Println("cost:", cost) }}},
		Providers: map[string]provider.Settings{"acme": {
			Type: "compatible", BaseURL: server.URL, // a server with the OpenAI Chat API
			Extensions: map[string]json.RawMessage{"acme.cost": json.RawMessage(`{"region": "eu"}`)},
		}},
	}
	model, err := config.Open("acme/large")
	if err != nil {
		log.Fatal(err)
	}
	resp, err := model.Generate(context.Background(), &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("Hello?")}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Text())
}

func serve(w http.ResponseWriter, r *http.Request) {
	var body struct{ Region string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Printf("the server got region %q\n", body.Region)
	_, _ = io.WriteString(w, `{"choices": [{"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}], "cost": 0.0021}`)
}
