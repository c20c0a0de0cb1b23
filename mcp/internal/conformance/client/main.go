// Command client is the fixture of the official conformance suite for clients. It uses only what
// any program can use, with the steps of package tool on every call.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/mcp/oauth"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// scenarioContext holds the values that the suite supplies.
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
	ToolCalls        []call `json:"toolCalls"`
}

type call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: client SERVER-URL")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	err := run(ctx, os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Args[1])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// user is a human who approves every call and leaves every form as it is, with its defaults.
var user = policy.ApproverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
	return tool.Answer{Verdict: tool.Approved}, nil
})

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
			fmt.Fprintf(os.Stderr, "%-20s ok=%-5v %s\n\tgot: %s\n\tmeaning: %s\n\tadvice: %s\n", s.Name, s.OK, s.Sent, s.Got, s.Meaning, s.Advice)
		}
	}
	servers, err := mcp.Connect(ctx, mcp.Options{
		Approver:  user,
		Authorize: func(mcp.Server) (mcp.Authorizer, error) { return oauth.New(options) },
		Log:       slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}, mcp.HTTP(server).As("suite"))
	if err != nil {
		return err
	}
	defer func() { _ = servers.Close() }()
	status := servers.Status()[0]
	if status.State != mcp.StateReady {
		return fmt.Errorf("the server is %s: %w", status.State, status.Err)
	}
	for _, note := range status.Notes {
		fmt.Fprintln(os.Stderr, "note:", note)
	}
	box, err := tool.NewBox(servers.Tools()...)
	if err != nil {
		return err
	}
	if err := callTools(ctx, box, calls(box, c)); err != nil {
		return err
	}
	return errors.Join(readLists(ctx, servers), readSkills(ctx, servers, scenario))
}

// calls returns the calls that the suite wants, or one of each tool.
func calls(box *tool.Box, c scenarioContext) []call {
	if len(c.ToolCalls) > 0 {
		return c.ToolCalls
	}
	var out []call
	for _, spec := range box.Specs() {
		one := call{Name: spec.Name, Arguments: json.RawMessage("{}")}
		switch spec.Name {
		case "add_numbers":
			one.Arguments = json.RawMessage(`{"a":5,"b":3}`)
		case "valid_tool":
			one.Arguments = json.RawMessage(`{"region":"us-west1"}`)
		case "lookup_user":
			one.Arguments = json.RawMessage(`{"id":"user-1"}`)
		case "json_schema_2020_12_tool":
			continue // its schema is what the next tool gets
		case "json_schema_echo":
			one.Arguments = json.RawMessage(`{"schema":` + string(schemaOf(box, "json_schema_2020_12_tool")) + `}`)
		}
		out = append(out, one)
	}
	return out
}

// schemaOf returns the schema of a tool as its server sent it.
func schemaOf(box *tool.Box, name string) json.RawMessage {
	for _, spec := range box.Specs() {
		if spec.Name == name && spec.Source != nil {
			var definition struct {
				InputSchema json.RawMessage `json:"inputSchema"`
			}
			if json.Unmarshal(spec.Source.JSON, &definition) == nil {
				return definition.InputSchema
			}
		}
	}
	return json.RawMessage("null")
}

// callTools makes all calls in one turn, in parallel.
func callTools(ctx context.Context, box *tool.Box, calls []call) error {
	turn := tool.Turn{Number: 1}
	for i, c := range calls {
		turn.Calls = append(turn.Calls, &dragoman.ToolCall{ID: fmt.Sprintf("call-%d", i+1), Name: c.Name, Arguments: string(c.Arguments)})
	}
	batch, err := (&tool.Runner{Approver: user}).Start("conformance").Do(ctx, box, turn)
	if err != nil {
		return err
	}
	var errs []error
	for i, r := range batch.Results {
		if r == nil || r.Outcome != "ok" {
			text := "it has no result"
			if r != nil {
				text = r.PlainText()
			}
			errs = append(errs, fmt.Errorf("call of %s: %s", calls[i].Name, text))
		}
	}
	return errors.Join(errs...)
}

// readLists reads all resources and prompts.
func readLists(ctx context.Context, servers *mcp.Servers) error {
	resources, err := servers.Resources(ctx)
	errs := []error{err}
	for _, r := range resources {
		_, err := servers.ReadResource(ctx, r.Server, r.URI)
		errs = append(errs, err)
	}
	prompts, err := servers.Prompts(ctx)
	errs = append(errs, err)
	for _, p := range prompts {
		_, err := servers.GetPrompt(ctx, p.Server, p.Name, nil)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// readSkills loads the skills, unless the scenario is about what happens before.
func readSkills(ctx context.Context, servers *mcp.Servers, scenario string) error {
	skills, err := servers.Skills(ctx)
	if err != nil || scenario == "sep-2640-client-no-prefetch" {
		return err
	}
	for _, k := range skills {
		if _, err := servers.ReadSkill(ctx, k, k.URI); err != nil {
			return err // its files are not read
		}
		for _, f := range k.Files {
			if _, err := servers.ReadSkill(ctx, k, f.URI); err != nil {
				return err
			}
		}
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
			fmt.Fprintln(os.Stderr, "browser:", err)
		}
	}()
	return nil
}
