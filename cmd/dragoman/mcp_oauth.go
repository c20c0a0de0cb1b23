package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/mcp/oauth"
)

// tokenKeyVariable names the secret that encrypts stored tokens.
const tokenKeyVariable = "DRAGOMAN_TOKEN_KEY"

// tokenStore opens the store of tokens.
func tokenStore() (*oauth.FileStore, error) {
	dir, err := oauth.DefaultDir()
	if err != nil {
		return nil, err
	}
	return oauth.NewFileStore(dir, []byte(os.Getenv(tokenKeyVariable)))
}

// registered is a client that was registered in advance, in the token store: refreshing a token
// needs it, too.
type registered struct {
	ID     string   `json:"id"`
	Secret string   `json:"secret,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
}

func registeredKey(url string) string { return "command client " + url }

// oauthOptions returns the options for a server, with the client of its login. A store that does
// not exist yet is not created.
func oauthOptions(ctx context.Context, url string) (oauth.Options, error) {
	o := oauth.Options{Server: url}
	dir, err := oauth.DefaultDir()
	if err != nil {
		return o, nil //nolint:nilerr // without a folder there are no tokens
	}
	if _, err := os.Stat(dir); err != nil {
		return o, nil //nolint:nilerr // nothing was stored
	}
	store, err := tokenStore()
	if err != nil {
		return o, err
	}
	o.Store = store
	data, err := store.Load(ctx, registeredKey(url))
	if err != nil || data == nil {
		return o, err
	}
	var r registered
	if err := json.Unmarshal(data, &r); err != nil {
		return o, fmt.Errorf("the token store has a malformed entry for %s: log in again", url)
	}
	o.Client, o.Scopes = oauth.Client{ID: r.ID, Secret: r.Secret}, r.Scopes
	return o, nil
}

// hasCredentials reports whether the file has the credentials of a server.
func hasCredentials(s mcp.Server) bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// authorizeServer returns the stored tokens for a server. It never opens a browser.
func authorizeServer(s mcp.Server) (mcp.Authorizer, error) {
	if hasCredentials(s) {
		return nil, nil //nolint:nilnil // no authorizer
	}
	o, err := oauthOptions(context.Background(), s.URL)
	if err != nil {
		return nil, err
	}
	a, err := oauth.New(o)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// needsLogin reports whether a login would help.
func needsLogin(err error) bool { return errors.Is(err, oauth.ErrLoginRequired) }

// serverURL returns the URL that an argument names: itself, or that of a server of the file.
func (o *mcpFlags) serverURL(arg string) (string, error) {
	if isURL(arg) {
		return arg, nil
	}
	s, err := o.read()
	if err != nil {
		return "", err
	}
	server, err := s.find(arg)
	switch {
	case err != nil:
		return "", err
	case server.URL == "":
		return "", failed("server %q is a program, which needs no login: it gets its credentials with --env of \"dragoman mcp add\"", arg)
	case hasCredentials(server):
		return "", failed("server %q has an Authorization header in %s, so it needs no login", arg, o.file)
	}
	return server.URL, nil
}

func newMCPLogin() *cobra.Command {
	var files mcpFlags
	var clientID, secretEnv string
	var scopes []string
	var noBrowser bool
	cmd := &cobra.Command{
		Use:   "login SERVER|URL",
		Short: "Log in to a server that uses OAuth",
		Long: `Login opens the browser for the login of a server that uses OAuth, waits for its answer on
a port of this machine (33818, 33819 or 33820), and stores the token. Tokens are used by
all commands that connect to the server, and refreshed when they expire.

Tokens are stored encrypted in dragoman/oauth in the configuration folder of the user. The
key is a file beside them, or the variable DRAGOMAN_TOKEN_KEY with at least 16 random
characters, such as from a key chain.

On a machine without a browser use --no-browser and open the printed page in a browser of
the same machine, or of another one through a tunnel to the port.

If the authorization server lets no unknown program register, register a client there with
the redirect URI http://127.0.0.1:33818/callback, and give its id with --client-id.`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			url, err := files.serverURL(args[0])
			if err != nil {
				return err
			}
			client := registered{ID: clientID, Scopes: scopes}
			if secretEnv != "" {
				if client.Secret = os.Getenv(secretEnv); client.Secret == "" || clientID == "" {
					return usageError("--client-secret-env needs --client-id, and a variable that is set")
				}
			}
			store, err := tokenStore()
			if err != nil {
				return failed("%w", err)
			}
			out := cmd.ErrOrStderr()
			o := oauth.Options{
				Server: url, Store: store, Client: oauth.Client{ID: client.ID, Secret: client.Secret}, Scopes: scopes, Browser: oauth.OpenBrowser,
				Confirm: func(_ context.Context, l oauth.Login) error {
					fmt.Fprintf(out, "Log in at %s for %s", textkit.Visible(l.Host), textkit.Visible(l.Server))
					if len(l.Scopes) > 0 {
						fmt.Fprintf(out, ", scopes: %s", textkit.Visible(strings.Join(l.Scopes, ", ")))
					}
					fmt.Fprintf(out, ".\nIf no browser opens, open this page:\n  %s\n", textkit.Visible(l.URL))
					return nil
				},
			}
			if noBrowser {
				o.Browser = func(context.Context, string) error { return nil } // Confirm prints the page
			}
			a, err := oauth.New(o)
			if err != nil {
				return failed("%w", err)
			}
			if err := a.Login(ctx); err != nil {
				return failed("%w", err)
			}
			var kept []byte // an empty value deletes an earlier client
			if client.ID != "" || len(scopes) > 0 {
				if kept, err = json.Marshal(client); err != nil {
					return failed("%w", err)
				}
			}
			if err := store.Save(ctx, registeredKey(url), kept); err != nil {
				return failed("%w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Logged in to %s.\n", textkit.Visible(args[0]))
			return nil
		},
	}
	files.add(cmd, serverFile, "the server file")
	f := cmd.Flags()
	f.StringVar(&clientID, "client-id", "", "the id of a client that was registered in advance")
	f.StringVar(&secretEnv, "client-secret-env", "", "the variable with the secret of that client")
	f.StringSliceVar(&scopes, "scope", nil, "scopes to request in addition to those that the server asks for")
	f.BoolVar(&noBrowser, "no-browser", false, "print the page of the login, and do not open it")
	return cmd
}

func newMCPLogout() *cobra.Command {
	var files mcpFlags
	cmd := &cobra.Command{
		Use:   "logout SERVER|URL",
		Short: "Delete the token of a server, and revoke it if possible",
		Args:  arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			url, err := files.serverURL(args[0])
			if err != nil {
				return err
			}
			o, err := oauthOptions(ctx, url)
			if err != nil {
				return failed("%w", err)
			}
			if o.Store != nil {
				a, err := oauth.New(o)
				if err != nil {
					return failed("%w", err)
				}
				if err := errors.Join(a.Logout(ctx), o.Store.Save(ctx, registeredKey(url), nil)); err != nil {
					return failed("the token was deleted here, but: %w", err)
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Logged out of %s.\n", textkit.Visible(args[0]))
			return nil
		},
	}
	files.add(cmd, serverFile, "the server file")
	return cmd
}

func newMCPDoctor() *cobra.Command {
	var files mcpFlags
	var report string
	cmd := &cobra.Command{
		Use:   "doctor SERVER|URL",
		Short: "Explain step by step why a server works or does not work",
		Long: `Doctor connects to a server and reports each step: for a URL the authorization, what was
asked and what the server answered; then the negotiation of the protocol revision and the
list of tools; and what to do about a problem. It logs in nowhere, calls no tool, and
prints no secrets. A program is started, as for the other commands.

The exit code is 1 if a step failed.`,
		Example: `  dragoman mcp doctor files`,
		Args:    arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			asJSON, err := reportFormat(report)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			d := doctor{out: cmd.OutOrStdout(), json: asJSON, flags: &files, arg: args[0]}
			server := mcp.HTTP(args[0])
			s := &mcpServers{flags: &files, lock: &mcp.Lock{}}
			if !isURL(args[0]) {
				if s, err = files.read(); err != nil {
					return err
				}
				if server, err = s.find(args[0]); err != nil {
					return err
				}
				server.Disabled = false
			}
			d.diagnose(ctx, s, server)
			if asJSON {
				if err := writeJSON(cmd.OutOrStdout(), d.steps); err != nil {
					return err
				}
			}
			switch {
			case d.err != nil:
				return d.err
			case d.failed > 0 && asJSON:
				return &exitError{code: exitFailed}
			case d.failed > 0:
				return failed("%s failed", plural(d.failed, "step", "steps"))
			}
			return nil
		},
	}
	files.add(cmd, serverFile, "the server file")
	cmd.Flags().StringVar(&report, "report", "text", "output format: text or json")
	return cmd
}
