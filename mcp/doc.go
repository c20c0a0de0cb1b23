// Package mcp connects MCP servers to agents: the tools of a server become tools of this
// program, with the same validation, policies, approvals, bounds and records.
//
//	servers, err := mcp.Connect(ctx, mcp.Options{},
//		mcp.Stdio("npx", "-y", "@modelcontextprotocol/server-memory"),
//		mcp.HTTP("https://mcp.example.com/mcp"))
//	defer servers.Close()
//	a := agent.Agent{Model: model, Tools: servers.Tools()}
//
// Everything that a server sends is untrusted: descriptions, annotations and results. Package
// mcp/mcpserver is the other side: it serves tools of this program to MCP clients.
package mcp
