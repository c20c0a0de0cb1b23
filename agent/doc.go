// Package agent runs the agent loop: it calls a model, runs the tools that the model
// calls, and repeats this until the model gives a final answer.
//
//	a := agent.Agent{
//		Model: provider.MustOpen("anthropic/claude-opus-5-5"), // or openai/…, gemini/…, ollama/…, sim/planner
//		Tools: []tool.Tool{weather},
//	}
//	res, err := a.Run(ctx, "Do I need a coat in Oslo?")
//
// [Agent.Run] returns when the run is over. [Agent.Stream] reports the run while it
// happens, as a sequence of sealed events that ends with [RunEnd]. Both return a
// result together with an error: a limit, a failed model call, or a canceled context
// does not discard what the run has done.
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
// [In] stores a run in a [Store], such as a session of package session. The run writes
// messages, decisions, started calls and results in this order, each before the next
// step. If a process is killed at any moment, another process can resume the run, and no
// effect happens twice: a call that may have run is reported as uncertain, unless its
// tool is marked as idempotent.
//
// # Concurrency
//
// A run copies its Agent when it begins. Runs share only what the fields of the Agent
// point to: models, tools and runners, all of which are safe for concurrent use. A store
// serves one run at a time; a second run gets an error.
package agent
