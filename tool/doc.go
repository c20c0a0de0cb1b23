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
// It is not the place for the loop around it (who asks the model again), nor for
// rules and approvals themselves: package tool/policy has those.
package tool
