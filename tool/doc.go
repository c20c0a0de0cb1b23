// Package tool defines tools that a model can call, and validates, authorizes, runs and bounds
// their calls.
//
//	weather := tool.New("get_weather", "Current weather in a city.",
//		func(ctx context.Context, c City) (Weather, error) { return lookup(ctx, c.Name) })
//	box, err := tool.NewBox(weather)
//	run := (&tool.Runner{}).Start("run-1")
//	batch, err := run.Do(ctx, box, tool.Turn{Number: 1, Calls: response.ToolCalls()})
//	messages = append(messages, dragoman.ToolResults(batch.Settled()...))
//
// Every call takes the same steps, and its [Record] shows them:
//   - find the tool;
//   - read the arguments, repaired only where the repair cannot change their meaning;
//   - validate them;
//   - ask the policy;
//   - run the pre-hooks, whose output is validated and judged again;
//   - ask a human, if approval is needed;
//   - run the middleware and the tool, with a time limit and with exactly the approved
//     arguments;
//   - run the post-hooks;
//   - redact, bound and fence the output.
//
// Every failure on the way becomes a result that the model can act on. A panic in a tool, hook
// or policy does not escape, and each of them has a time limit.
//
// # Approvals and resuming
//
// A call that needs a human decision gets it from [Runner.Approver] or becomes pending:
// [Batch.Pending] lists it, it has no result, and the other calls of the turn have run. To
// resume, also in another process, store as JSON the run's id, the turn's number and calls,
// [Batch.Settled] and [Batch.Pending]. Once there is a decision, pass the same turn again with
// the stored values:
//
//	batch, err = runner.Start("run-1").Do(ctx, box, tool.Turn{Number: 1, Calls: calls, Resume: pending, Results: settled})
//
// A call with a result does not run again. A decided call runs with exactly the input that was
// shown. An undecided call is pending again.
//
// The agent loop, which calls the model again, is in package agent. Rules and approvals are in
// package tool/policy.
package tool
