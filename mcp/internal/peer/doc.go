// Package peer is the client side of one MCP server, above the transport: it finds the revision
// that the server speaks, sends requests and retries them where that is safe, answers the
// server's own requests, follows its lists and its tasks, and replaces a lost connection.
//
// Parameters and results are raw JSON, so that fields that this program does not know survive.
// The package knows nothing of tools of this program: package mcp and the gateway build on it.
package peer
