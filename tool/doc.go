// Package tool stands between a model's wish and an effect in the world: tools are
// defined, named, found, validated, gated, run and bounded here.
//
//	weather := tool.New("get_weather", "Current weather in a city.",
//		func(ctx context.Context, c City) (Weather, error) { return lookup(ctx, c.Name) })
//	box, err := tool.NewBox(weather)
//	run := (&tool.Runner{}).Start("run-1")
//	batch, err := run.Do(ctx, box, tool.Turn{Number: 1, Calls: response.ToolCalls()})
//	messages = append(messages, dragoman.ToolResults(batch.Settled()...))
//
// The way of a call is always the same, and each step is in its [Record]: find the
// tool; read the arguments, mended only where that cannot change what they mean;
// validate; ask the policy; pre-hooks, whose output is validated and judged again;
// ask a human where one must be; middleware and the tool, in bounded time, with
// exactly the arguments that were approved; post-hooks; redact, bound and fence the
// output. Whatever goes wrong on it is a result that the model can act on. Nothing
// of a tool, a hook or a policy panics through, and none is waited for longer than
// its time.
//
// # Humans, and going on later
//
// A call that needs a human's word gets it from [Runner.Approver], or is pending:
// [Batch.Pending] has it, the other calls of the turn have run, and there is no
// result for it. To go on, also in another process, store as JSON the run's id, the
// turn's number and calls, [Batch.Settled] and [Batch.Pending]; when a decision is
// there, hand the same turn in again with what was stored:
//
//	batch, err = runner.Start("run-1").Do(ctx, box, tool.Turn{Number: 1, Calls: calls, Resume: pending, Results: settled})
//
// What has its result does not run again, what is decided runs with exactly the
// input that was shown, and what is undecided is pending again.
//
// It is not the place for the loop around it (who asks the model again), nor for
// rules and approvals themselves: package tool/policy has those.
package tool
