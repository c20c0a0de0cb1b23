// Package mcpserver serves tools of this program to MCP clients, over stdio and HTTP, in every
// revision of the protocol up to 2026-07-28.
//
//	s, err := mcpserver.New(mcpserver.Options{Name: "weather", Version: "1.0", Tools: []tool.Tool{weather}})
//	err = s.ServeStdio(ctx)              // for a client that starts this program, or
//	http.Handle("/mcp", s.Handler())     // for clients that connect over HTTP
//
// A call takes the steps of package tool, with the policy, hooks, limits, journal and observer of
// [Options.Runner]: an MCP client is trusted no more than a model. Invalid arguments, denials
// and failures become results that the client's model can act on.
//
// # Approvals
//
// A call that needs approval is decided by the Approver of the Runner. If there is none, or it
// leaves the call undecided, the user of the client is asked with a form. In revision
// 2026-07-28 the call ends with that question, and the client calls again with the answer and
// a sealed state. The state names the caller, the tool, its definition, the final arguments and
// the version of the policy, expires after [Options.ApprovalTTL], and works once. Older clients
// get the form while they wait for the call. A client without forms gets an error that says
// who can approve the call.
//
// The answer comes from the client, so it proves as much as the client can be trusted: set
// [Options.NoClientApprovals] for decisions that only this program may make.
//
// With [Options.StateKey] and a Journal, an approval and its effect survive a crash: a client
// that repeats its request gets the result of the first attempt, or an error that says that
// the outcome is unknown. Without them, a restart voids all open approvals.
//
// # Questions and background work
//
// A tool asks the user or the model of the client with [Ask], reports progress with [Progress],
// and continues in the background with [Background]. Background work, also that of
// [tool.Background], is a task of the extension io.modelcontextprotocol/tasks for clients that
// declare it. Other clients wait for the outcome.
package mcpserver
