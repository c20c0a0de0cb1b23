// Command conformance is the client under test in the authorization scenarios of the official
// conformance suite. It uses the transport of the SDK and package oauth.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-go/dragoman/mcp/oauth"
)

// scenarioContext holds the credentials that the suite supplies.
type scenarioContext struct {
	ClientID         string `json:"client_id"`
	ClientSecret     string `json:"client_secret"`
	Issuer           string `json:"issuer"`
	PrivateKey       string `json:"private_key_pem"`
	IDPClientID      string `json:"idp_client_id"`
	IDPIDToken       string `json:"idp_id_token"`
	IDPIssuer        string `json:"idp_issuer"`
	IDPTokenEndpoint string `json:"idp_token_endpoint"`
	ValidJWT         string `json:"valid_jwt"`
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: conformance SERVER-URL")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	if err := run(ctx, os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Args[1]); err != nil {
		cancel()
		log.Fatal(err) //nolint:gocritic // cancel has run
	}
}

func run(ctx context.Context, scenario, server string) error {
	var c scenarioContext
	if s := os.Getenv("MCP_CONFORMANCE_CONTEXT"); s != "" {
		if err := json.Unmarshal([]byte(s), &c); err != nil {
			return fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	options, err := optionsFor(scenario, server, c)
	if err != nil {
		return err
	}
	if os.Getenv("MCP_CONFORMANCE_DOCTOR") != "" {
		for s := range oauth.Diagnose(ctx, server, options) {
			log.Printf("%-20s ok=%-5v %s\n\tgot: %s\n\tmeaning: %s\n\tadvice: %s", s.Name, s.OK, s.Sent, s.Got, s.Meaning, s.Advice)
		}
	}
	auth, err := oauth.New(options)
	if err != nil {
		return err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "dragoman-conformance", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: server, HTTPClient: &http.Client{Transport: auth.RoundTripper(nil)},
	}, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = session.Close() }()
	if _, err := session.ListTools(ctx, nil); err != nil {
		return fmt.Errorf("list tools: %w", err)
	}
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "test-tool", Arguments: map[string]any{}}); err != nil {
		return fmt.Errorf("call a tool: %w", err)
	}
	return nil
}

func optionsFor(scenario, server string, c scenarioContext) (oauth.Options, error) {
	o := oauth.Options{
		Server:         server,
		Browser:        follow,
		ClientDocument: "https://conformance-test.local/client-metadata.json",
		LoginTimeout:   10 * time.Second,
	}
	if scenario == "auth/offline-access-scope" {
		o.ClientDocument = "" // the suite reads grant_types from the registration
	}
	client := oauth.Client{ID: c.ClientID, Secret: c.ClientSecret, Issuer: c.Issuer}
	switch scenario {
	case "auth/pre-registration":
		o.Client = client
	case "auth/client-credentials-basic":
		o.Client, o.Grant = client, oauth.ClientCredentials{}
	case "auth/client-credentials-jwt":
		key, err := oauth.ParseKey([]byte(c.PrivateKey))
		if err != nil {
			return o, err
		}
		client.Key = key
		o.Client, o.Grant = client, oauth.ClientCredentials{}
	case "auth/enterprise-managed-authorization":
		o.Client = client
		o.Grant = oauth.Enterprise{
			TokenEndpoint: c.IDPTokenEndpoint,
			Client:        oauth.Client{ID: c.IDPClientID, Issuer: c.IDPIssuer},
			Identity: func(context.Context) (string, string, error) {
				return c.IDPIDToken, "", nil
			},
		}
	case "auth/wif-jwt-bearer":
		o.Client = client
		o.Grant = oauth.Workload{Assertion: func(context.Context, string) (string, error) {
			return c.ValidJWT, nil
		}}
	}
	return o, nil
}

// follow acts as a browser whose user agrees at once: it follows the redirects to the
// loopback address of the login.
func follow(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	go func() {
		resp, err := http.DefaultClient.Do(req) //nolint:gosec // the address is of the suite
		if err == nil {
			_ = resp.Body.Close()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			log.Print(err)
		}
	}()
	return nil
}
