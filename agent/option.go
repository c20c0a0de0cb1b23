package agent

import (
	"context"
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/targets"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// Option configures one run.
type Option interface{ apply(*options) }

// options are the options of one run.
type options struct {
	id        string
	messages  []dragoman.Message
	store     Store
	metadata  map[string]string
	abandon   bool
	stop      <-chan struct{}
	decisions []decision
	chunks    bool
	path      []string     // the names of the outer agents
	journal   tool.Journal // of the outer run
	outerLog  decisionStore
	spill     tool.SpillStore  // of the outer run
	tickets   tool.TicketStore // of the outer run
	secrets   *tool.Run        // of the outer run, whose secrets are hidden here too
	media     mediaDetacher    // of the outer run
	policies  []*policy.Policy // of the outer runs
	check     func(answer string) (correction string)
	output    *structured
}

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

func optionsOf(opts []Option) options {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&o)
		}
	}
	return o
}

// Store holds a run, so that another process can resume it. A session of package
// session is a Store; a durable workflow engine can implement it. It must refuse a
// second writer.
//
// A run also uses these methods of a Store that has them, as a session does:
//
//	Lock() (leave func(), err error)                                    // one run at a time
//	MessagesInPlaceOf(ctx, []dragoman.Message, origin, match) ([]dragoman.Message, error) // a native history
//	Decide(ctx, ...tool.Ruling) error                                   // with Decided: approvals
//	Decided(ctx, tool.Binding) (*tool.Ruling, error)
//	Spill() tool.SpillStore                                             // stores outputs that are too long
//	Records(ctx, run string) ([]tool.Record, error)                     // with SaveRecords: records
//	SaveRecords(ctx, []dragoman.Message, state []byte, run string, []tool.Record) error
//	Tickets() tool.TicketStore                                          // background tools
//	Expand(ctx, []dragoman.Message) ([]dragoman.Message, error)         // content stored separately
//	Detach(ctx, []dragoman.Message) ([]dragoman.Message, error)
//	BeforeSave(ctx, dragoman.Model, model string, []dragoman.Message) error // actions of extensions
type Store interface {
	// Journal prevents calls from running twice.
	tool.Journal
	// Load returns the conversation and the state that was saved last, or nil.
	Load(ctx context.Context) (messages []dragoman.Message, state []byte, err error)
	// Save adds messages and replaces the state, both or neither. The data
	// must be durable when Save returns. The caller does not change the state, which is
	// JSON, afterwards. Save may be called while other goroutines use the journal: the
	// stop of a guardrail is stored while tools run.
	Save(ctx context.Context, messages []dragoman.Message, state []byte) error
}

// locker is a [Store] that several goroutines may share. Lock reserves it for one run until
// leave is called. It returns an error if another run holds the store.
type locker interface {
	Lock() (leave func(), err error)
}

// historyStore is a [Store] that may hold a native history to send in place of the
// conversation to the origin that made it, such as a history that an action has compacted.
// The run uses it for a model that knows its target, as a provider.Client does, and for
// each such model of a provider.Chain; all others get the whole conversation.
type historyStore interface {
	// MessagesInPlaceOf returns the messages to send to a target in place of messages, which are the
	// whole conversation. It returns messages itself if the store has no native history for
	// the target. match selects the fields of an origin that must agree.
	MessagesInPlaceOf(ctx context.Context, messages []dragoman.Message, target dragoman.Origin, match targets.Match) ([]dragoman.Message, error)
}

// decisionStore is a [Store] that also stores decisions on calls that needed approval. They
// come from the options of [Agent.Resume] or from an approver of the Runner. The stored
// decisions are an audit trail, and a process that resumes the run uses them.
type decisionStore interface {
	// Decide stores decisions. They must be durable when it returns; the run acts on them
	// only afterwards.
	Decide(ctx context.Context, rulings ...tool.Ruling) error
	// Decided returns the last decision on exactly this call, or nil.
	Decided(ctx context.Context, b tool.Binding) (*tool.Ruling, error)
}

// spillProvider is a [Store] that also stores tool outputs that are too long for the
// model. A run uses it for every agent whose Runner has no Spill of its own, and then
// gives the model the tool "read_tool_output" from the first request on. A session of
// package session is one.
type spillProvider interface {
	Spill() tool.SpillStore
}

// recordStore is a [Store] that also stores the records of tool calls, each once. The
// state, which is saved in every turn, then has no records; with any other store, it holds
// the records of the last 200 calls. A session of package session is one.
type recordStore interface {
	// SaveRecords does what Save does and adds records of a run, all or nothing. The
	// records omit texts that the messages hold. SaveRecords must not retain the slice.
	SaveRecords(ctx context.Context, messages []dragoman.Message, state []byte, run string, records []tool.Record) error
	// Records returns the records of a run, in the order in which they were added.
	Records(ctx context.Context, run string) ([]tool.Record, error)
}

// ticketProvider is a [Store] that also stores the tickets of background tools. A run uses
// it for every agent whose Runner has no Tickets of its own. Tickets may return nil if the
// store cannot. A session of package session is one.
type ticketProvider interface {
	Tickets() tool.TicketStore
}

// expander is a [Store] whose messages refer to content that is stored separately, such as
// images. A run calls Expand to restore the content in every request that it builds; an
// error ends the run. A session of package session is one.
type expander interface {
	Expand(ctx context.Context, messages []dragoman.Message) ([]dragoman.Message, error)
}

// mediaDetacher is an expander that stores the content of large media separately. A run uses
// it to replace the content in the messages and results of its state with references.
// Without it, the state holds the content. A session of package session is one.
type mediaDetacher interface {
	expander
	// Detach stores the content of large media and returns the messages with references to
	// it, for Expand. It does not change its argument.
	Detach(ctx context.Context, messages []dragoman.Message) ([]dragoman.Message, error)
}

// savePreparer is a [Store] that runs actions of the model's extensions before messages
// are saved, such as compacting its native history. A run calls it before it saves a
// conversation whose calls are all answered. A session of package session is one.
type savePreparer interface {
	// BeforeSave gets the model of the current agent, its name if the agent's settings
	// have one, and the messages that are about to be saved. An error is logged and
	// reported as a [Notice]; the messages are saved anyway.
	BeforeSave(ctx context.Context, model dragoman.Model, name string, messages []dragoman.Message) error
}

// In stores the run in s and starts with the conversation that s holds.
func In(s Store) Option { return optionFunc(func(o *options) { o.store = s }) }

// ID sets the id of the run; without it the agent makes one. The journal identifies calls
// by the id of their run, so two runs in one store must not share an id.
func ID(id string) Option { return optionFunc(func(o *options) { o.id = id }) }

// Messages adds messages before the prompt: an earlier conversation that is stored
// elsewhere, or an image that belongs to the prompt. With messages, the prompt may be empty.
func Messages(ms ...dragoman.Message) Option {
	return optionFunc(func(o *options) { o.messages = append(o.messages, ms...) })
}

// Metadata passes key-value pairs to policies and tools.
func Metadata(m map[string]string) Option {
	return optionFunc(func(o *options) { o.metadata = m })
}

// Abandon gives up the calls that an earlier run left pending or unfinished: each gets the
// result that the store has of it, or else an error, which is stored, and the run begins
// with the new input. Without it, such input is refused with [ErrUnfinished].
func Abandon() Option { return optionFunc(func(o *options) { o.abandon = true }) }

// StopAfterTurn ends the run at the end of the current turn once the channel is closed.
// Started calls finish, the state can be resumed, and the error is [ErrStopped]. If the
// channel is already closed, the run has one turn, or completes a turn that was
// interrupted. In contrast, canceling the context does not wait for the turn.
func StopAfterTurn(done <-chan struct{}) Option {
	return optionFunc(func(o *options) { o.stop = done })
}

// Chunks also reports the native bytes of streams, if the model provides them. Models that
// package provider opens do, except the in-process simulator. Each chunk is a [ModelEvent]
// with a [dragoman.Chunk], whose bytes are valid until the next event.
func Chunks() Option { return optionFunc(func(o *options) { o.chunks = true }) }

// Approve lets a pending call run with its arguments unchanged.
func Approve(p tool.Pending) Option {
	return decision{pending: p, answer: tool.Answer{Verdict: tool.Approved}}
}

// ApproveAll approves every pending call of a list, such as [Result.Pending], with its
// arguments unchanged. Calls that wait for a value stay pending: see [Value].
func ApproveAll(pending []tool.Pending) Option {
	return optionFunc(func(o *options) {
		for _, p := range pending {
			if p.Wanted == nil {
				Approve(p).apply(o)
			}
		}
	})
}

// Reject rejects a pending call. The model reads the message as the result of the call;
// an empty message gives no reason.
func Reject(p tool.Pending, message string) Option {
	return decision{pending: p, answer: tool.Answer{Verdict: tool.Rejected, Message: message}}
}

// Edit lets a pending call run with other arguments. They are validated, and the policy
// decides on them again.
func Edit(p tool.Pending, in tool.Input) Option {
	return decision{pending: p, answer: tool.Answer{Verdict: tool.Approved, Edited: &in}}
}

// Value gives a pending call the value that it waits for.
func Value(p tool.Pending, value json.RawMessage) Option {
	return decision{pending: p, answer: tool.Answer{Verdict: tool.Approved, Value: value}}
}

// Always lets a pending call run, and every later call of the same tool in this
// run.
func Always(p tool.Pending) Option {
	return decision{pending: p, answer: tool.Answer{Verdict: tool.Approved}, sticky: true}
}

// Never rejects a pending call, and every later call of the same tool in this run.
func Never(p tool.Pending, message string) Option {
	return decision{pending: p, answer: tool.Answer{Verdict: tool.Rejected, Message: message}, sticky: true}
}
