package mcp_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp"
)

func TestResourcesAndPromptsOfEveryTransport(t *testing.T) {
	variants(t, func(t *testing.T, s mcp.Server, _ string, _ bool) {
		servers := connect(t, mcp.Options{}, s)
		label := s.Label()
		list, err := servers.Resources(t.Context())
		if err != nil || len(list) != 1 || list[0].URI != "file:///a.txt" || list[0].Server != label {
			t.Fatal(list, err)
		}
		parts, err := servers.ReadResource(t.Context(), label, "file:///a.txt")
		if err != nil || len(parts) != 1 || !strings.Contains(parts[0].(*dragoman.Text).Text, "content of a") {
			t.Fatal(parts, err)
		}
		if _, err := servers.ReadResource(t.Context(), label, "file:///zz"); err == nil {
			t.Error("a missing resource is no error")
		}
		prompts, err := servers.Prompts(t.Context())
		if err != nil || len(prompts) != 1 || prompts[0].Arguments[0].Name != "lang" || !prompts[0].Arguments[0].Required {
			t.Fatal(prompts, err)
		}
		messages, err := servers.GetPrompt(t.Context(), label, "review", map[string]string{"lang": "go"})
		if err != nil || len(messages) != 1 || messages[0].Text() != "Review this go." {
			t.Fatal(messages, err)
		}
		if _, err := servers.Complete(t.Context(), label, "review", "lang", "g", nil); !errors.Is(err, mcp.ErrUnsupported) {
			t.Errorf("completion of a server without it: %v", err)
		}
		if _, err := servers.GetPrompt(t.Context(), "nope", "review", nil); err == nil || !strings.Contains(err.Error(), "unknown server") {
			t.Error(err)
		}
	})
}

func TestSubscribedResourcesReportChanges(t *testing.T) {
	for _, sessions := range []bool{false, true} {
		s := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, &sdk.ServerOptions{
			SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
			UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
			CompletionHandler: func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
				return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{"go"}}}, nil
			},
		})
		s.AddResource(&sdk.Resource{URI: "file:///a", Name: "a"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{}, nil
		})
		s.AddPrompt(&sdk.Prompt{Name: "p"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) { return nil, nil })
		changed := make(chan string, 100)
		servers := connect(t, mcp.Options{Observe: func(e mcp.Event) {
			if e.Kind == "resource" {
				changed <- e.URI
			}
		}}, mcp.HTTP(serveHTTP(t, s, sessions)).As("web"))
		if err := servers.Subscribe(t.Context(), "web", "file:///a"); err != nil {
			t.Fatal(err)
		}
		for got := ""; got != "file:///a"; { // the subscription of a modern server opens in the background
			_ = s.ResourceUpdated(t.Context(), &sdk.ResourceUpdatedNotificationParams{URI: "file:///a"})
			select {
			case got = <-changed:
			case <-t.Context().Done():
				t.Fatal("no change was reported")
			default:
			}
		}
		if err := servers.Unsubscribe(t.Context(), "web", "file:///a"); err != nil {
			t.Error(err)
		}
		if c, err := servers.Complete(t.Context(), "web", "p", "x", "g", nil); err != nil || len(c.Values) != 1 {
			t.Error(c, err)
		}
	}
}
