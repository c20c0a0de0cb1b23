// Package mcp connects MCP servers to agents: the tools of a server become tools of this
// program, with the same validation, policies, approvals, bounds and records.
//
//	servers, err := mcp.Connect(ctx, mcp.Options{},
//		mcp.Stdio("npx", "-y", "@modelcontextprotocol/server-memory"),
//		mcp.HTTP("https://mcp.example.com/mcp"))
//	defer servers.Close()
//	a := agent.Agent{Model: model, ToolSource: servers.Source}
//
// All revisions from 2024-11-05 to 2026-07-28 work, over standard input and output, streamable
// HTTP and HTTP+SSE. A server that fails does not affect the others: [Servers.Status] reports
// it, and it is tried again in the background.
//
// # Trust
//
// Everything that a server sends is untrusted.
//   - Each call needs approval, unless [Server.Approval] says otherwise or a policy rule allows
//     it. Annotations such as read-only count only for servers that are [Server.Trusted].
//   - A definition that changes is held: models see the accepted one, and a call asks a human
//     to accept the new one, whatever the policy allows. With a [Lock], accepted definitions
//     are stored in a file, and only these are listed and called.
//   - Tools whose texts look like an attack are held until [Servers.Accept] names them.
//   - Results are bounded and fenced like those of other tools. Links in them are not fetched.
//
// # Questions of servers
//
// A server may ask the user during a call: to fill in a form, to open a page, or to let it use
// the model. Such a question goes to the approver of the run, as a [tool.ApprovalRequest]
// whose Wanted names the server and holds its text, form or URL. Without a decision, the call is
// pending like one that waits for approval. It continues when the run is resumed: in any
// process with servers of revision 2026-07-28, and only in the same process, and within 10
// minutes, with older ones.
//
// Package mcp/mcpserver is the other side: it serves tools of this program to MCP clients.
package mcp
