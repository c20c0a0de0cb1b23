// Package agent runs the loop: ask a model, run the tools that it calls, ask
// again, until it answers.
//
//	a := agent.Agent{
//		Model: provider.MustOpen("anthropic/claude-opus-5-5"), // or openai/…, gemini/…, ollama/…, sim/planner
//		Tools: []tool.Tool{weather},
//	}
//	res, err := a.Run(ctx, "Do I need a coat in Oslo?")
//
// [Agent.Run] returns when the run is over; [Agent.Stream] tells what happens
// meanwhile, as a sequence of sealed events that ends with [RunEnd]. Both return
// what there is also when they return an error: a limit, a model that failed, a
// context that ended.
//
// # Approvals
//
// A run whose calls wait for humans stops with [ErrInterrupted]. Result.Pending has these
// calls, and [Agent.Resume] continues the run from Result.State, which can be stored as
// JSON, in this process or another, now or in a month. The state of a run in a store does
// not hold the conversation: resume it with [In] and the same store. Resume also takes the
// decisions. Undecided calls interrupt the run again; calls that ran do not run again.
// Resuming uses no turn. Without a store, replace the JSON after each resumption: a state
// that is resumed twice runs its approved calls twice. A store refuses the second.
//
// # Sessions
//
// [In] keeps a run in a [Store], such as a session of package session: what was
// said, what was decided, what was begun, what came of it, in this order, each before
// the next. A
// process that is killed at any moment leaves a run that another goes on with,
// and no effect happens twice: a call that may have run is reported as uncertain,
// unless its tool says that it is idempotent.
//
// # Concurrency
//
// An Agent is copied when a run begins, and runs share nothing but what its
// fields point to: models, tools, runners, all of which are safe for concurrent
// use. One store is for one run at a time; whoever comes second gets an error.
package agent
