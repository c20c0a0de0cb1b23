// Package session keeps conversations, the state of the runs that lead them, and
// what became of the effects that tools had, so that nothing of it is lost in a
// crash and nothing happens twice after one.
//
//	store, err := sqlite.Open(ctx, "sessions.db", sqlite.Options{}) // or postgres.Open, or &session.Memory{}
//	s, err := session.Create(ctx, store, session.Info{Title: "Oslo"})
//	err = s.Save(ctx, []dragoman.Message{dragoman.UserText("Do I need a coat?")}, nil)
//	messages, state, err := s.Load(ctx)
//	runner := tool.Runner{Journal: s} // no tool runs twice for one call
//
// # The log
//
// A session is a log of entries that only grows: messages, the state of a run, what
// tools were about to do and what they came to, what was decided on calls that needed
// approval, metadata. What was
// acknowledged is durable; what was not is there as a whole or not at all. What
// several goroutines write at once is one commit.
//
// Nothing is ever changed in a log. [Session.Rewind] adds an entry from which on the
// conversation is what it was at an earlier one, so that it can be taken back too;
// [Session.Branch] makes a second session of the first entries of one. Messages are
// corrected by rewinding to before them and saving what they should have been.
//
// # One writer
//
// A [Session] is the claim of one writer. Every append names the entry that it
// follows, so that of two processes that go on with a session one is refused, with
// [ErrConflict], and stays refused. What it wanted to do next it does not do: the
// intent to run a tool is written before the tool runs.
//
// # Switching providers
//
// Messages are stored in their canonical form, with their native one and what minted
// it, so that whoever sends them replays what is valid for its target and rebuilds
// the rest. A native history that an extension's action replaced, such as a
// compacted one, is kept for its origin: [Session.For] returns it to that one and the
// whole conversation to all others. A run of package agent in the session sends it by
// itself.
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
// It is not the place for what a conversation has to look like on a wire (package
// history), nor for the loop that leads it.
package session
