// Package oauth is the client side of MCP authorization: it finds the authorization server of
// an MCP server, gets an access token for it, refreshes the token and answers challenges.
//
//	auth, err := oauth.New(oauth.Options{
//		Server:  "https://mcp.example.com/mcp",
//		Store:   store,             // such as FileStore; nil keeps tokens in memory
//		Browser: oauth.OpenBrowser, // nil never opens a browser
//	})
//	client := &http.Client{Transport: auth.RoundTripper(nil)}
//
// Everything that the server and its documents name is untrusted. All requests of this
// package go through one guarded client, see [Network]. A token is sent only to the origin of
// the server that it was issued for, and a token that this program received from its own
// clients is never forwarded to a server: see [TokenExchange].
//
// [Diagnose] runs the same code and reports each step, for a person who wants to know why a
// server cannot be used.
package oauth
