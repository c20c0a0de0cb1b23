// Package session stores conversations, the state of the runs that continue them, and the
// effects of their tool calls. After a crash, nothing is lost and no effect happens twice.
//
//	store, err := sqlite.Open(ctx, "sessions.db", sqlite.Options{}) // or postgres.Open, or &session.Memory{}
//	s, err := session.Create(ctx, store, session.Info{Title: "Oslo"})
//	err = s.Save(ctx, []dragoman.Message{dragoman.UserText("Do I need a coat?")}, nil)
//	messages, state, err := s.Load(ctx)
//	runner := tool.Runner{Journal: s} // no tool runs twice for one call
//
// # The log
//
// A session is an append-only log of entries: messages, run states, tool calls before they
// run and their results, decisions on calls that needed approval, and metadata. A write that
// was acknowledged is durable; a write that was not is stored completely or not at all.
// Concurrent writes of several goroutines share one commit.
//
// Entries are never changed. [Session.Rewind] adds an entry that resets the conversation to
// an earlier entry, so a rewind can itself be undone. [Session.Branch] creates a second
// session from the first entries of another. To correct a message, rewind to before it and
// save the new version.
//
// # One writer
//
// A [Session] assumes that it is the only writer. Every append names the entry that it
// follows. If two processes continue the same session, one of them gets [ErrConflict], and
// all its later calls fail too. That process runs no more tools, because the intent to run a
// tool is written before the tool runs.
//
// # Switching providers
//
// Messages are stored in canonical form, together with their native form and its origin, so
// that a request replays what is valid for its target and rebuilds the rest. A native
// history that an action of an extension replaced, such as a compacted one, is stored for
// its origin: [Session.MessagesFor] returns it for that origin, and the whole conversation for all
// others. A run of package agent in the session sends it automatically.
//
// # Attachments, outputs and tickets
//
// The log also has what the conversation refers to: media ([Session.Attach]), stored once
// and expanded when a request is built ([Session.Expand]), and tool outputs that are too
// long for the model ([Session.Spill]). Tickets of background tools ([Session.Tickets]) are
// in the store, where other processes settle them.
//
// # Actions
//
// [Session.Connect] connects a session to a provider's model, whose extensions can act on
// it, such as compacting its native history: automatically before a save, or with
// [Session.Act]. For a chain of models, the extensions of the model that gave the last
// response act; see [Session.ActionModel].
//
// Package history, not this package, adapts a conversation to a wire format, and package
// agent runs the loop.
package session
