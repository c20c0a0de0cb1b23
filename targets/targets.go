// Package targets describes the model that a request is written for: its dialect, where
// the model or its server deviates from it ([Capabilities]), and what the dialect itself
// requires ([Limits]). Codecs and package history read it; package models has the
// capabilities of known models.
package targets

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// Target describes the recipient of a request: a dialect, and the capabilities of the model and
// its server. The zero Capabilities are those of the dialect's own vendor.
type Target struct {
	Dialect dragoman.Dialect
	// Provider and Scope identify the server of the model, as in [dragoman.Origin];
	// empty means unknown.
	Provider string
	Scope    string
	// Model is the model that receives the request. It decides which parts of the history
	// may be replayed; empty means [dragoman.Request].Model. It does not set the model in
	// the request (Request.Model does) or Caps; package models has the capabilities
	// of known models.
	Model string
	Caps  Capabilities
}

// Origin returns the origin of state that this target creates.
func (t Target) Origin() dragoman.Origin {
	return dragoman.Origin{Dialect: t.Dialect, Provider: t.Provider, Scope: t.Scope, Model: t.Model}
}

// Capabilities describe how a model or server deviates from its dialect. The zero value means
// the dialect's vendor at its current version; each field documents what it turns on or
// off.
type Capabilities struct {
	// NoTools: the model cannot call tools.
	NoTools bool
	// NoStrict: the server rejects a strict flag; none is sent.
	NoStrict bool
	// StrictTools: the model accepts a strict flag, in a dialect whose models differ
	// in that. Without it, no flag is sent there (quirk A31).
	StrictTools bool
	// NoCustomTools: freeform tools are sent as functions.
	NoCustomTools bool
	// NoNamespaces: namespaced tools are sent under flat names.
	NoNamespaces bool
	// NoDeferred: deferred tools are sent as ordinary ones.
	NoDeferred bool
	// NoAllowedTools: a narrowed choice filters the tools instead.
	NoAllowedTools bool
	// NoDeveloperRole: developer messages are sent as system messages.
	NoDeveloperRole bool
	// NoImages: the model accepts no media of any kind. Each is replaced by a note.
	NoImages bool
	// RefusesMedia lists the kinds of media that the model does not accept, separated by
	// spaces: image, audio, video, file. Each is replaced by a note (quirk D14).
	RefusesMedia string
	// NoFiles: the server accepts no files, although its dialect has them. Each file is
	// replaced by a note; plain-text documents are sent as text.
	NoFiles bool
	// NoParallelFlag: the parallel flag is not sent.
	NoParallelFlag bool
	// NoStructuredOutput: no output schema is sent.
	NoStructuredOutput bool
	// NoOutputSchema: the server accepts JSON as an output format, but no schema; the
	// schema is sent in the instructions instead.
	NoOutputSchema bool
	// NoOutputWithTools: the model refuses an output format together with tools, or
	// violates it after tool turns; the format is sent in the instructions instead
	// (quirks F1, F8, F9).
	NoOutputWithTools bool
	// NoOutputSchemaStreamed: the server refuses an output schema in a streamed request;
	// the schema is sent in the instructions instead.
	NoOutputSchemaStreamed bool
	// NoMixedTools: functions cannot be combined with tools that the provider
	// runs; only functions are sent (quirk A44).
	NoMixedTools bool
	// Refuses lists request settings that the model rejects or ignores, separated by spaces;
	// they are dropped. RefusesThinking lists those that it rejects while it reasons. The
	// words:
	//   - temperature, top_p, top_k, frequency_penalty, presence_penalty, stop, seed, n,
	//     logit_bias, logprobs, top_logprobs, response_format, reasoning_format
	//   - max_tokens: max_completion_tokens is sent instead
	//   - prefill (in RefusesThinking only): a thinking budget is dropped if the
	//     conversation ends with assistant text
	//   - reasoning_effort=none: a request to switch reasoning off is dropped
	//   - reasoning_effort=xhigh+off: with reasoning off, xhigh and max become high
	Refuses         string
	RefusesThinking string
	// Temperature is the range of temperatures that the model accepts, such as "0 1.5";
	// other values are clamped to it. Empty means the range of the dialect.
	Temperature string
	// TopK: the server accepts top_k, although the vendor of its dialect does not.
	TopK bool
	// AnyMedia: the server may accept kinds of media that the vendor of its dialect
	// refuses; they are sent.
	AnyMedia bool
	// NoSampling: the model rejects temperature and the like.
	NoSampling bool
	// OneSampler: the model accepts temperature or top_p, but not both. If both differ from
	// their defaults, temperature is kept.
	OneSampler bool
	// NoStreamOptions: the server rejects stream_options.
	NoStreamOptions bool
	// NoCacheBreakpoints: the model rejects cache breakpoints; none is sent.
	NoCacheBreakpoints bool
	// DefaultMaxTokens is the output limit that is written if a request sets no limit and the
	// wire requires one; zero means the dialect's default. The model accepts at least that.
	DefaultMaxTokens int64
	// LegacyMaxTokens: max_tokens is sent instead of max_completion_tokens.
	LegacyMaxTokens bool
	// ForcedChoice states when the model accepts a tool choice that forces a call: empty
	// means always; the other values are "without_thinking" and "never".
	ForcedChoice string
	// ReasoningField is the field in which this server accepts reasoning in the history
	// ("reasoning_content", "reasoning"). Empty means none, except that reasoning
	// returns to the server that wrote it in the field that it used.
	ReasoningField string
	// ReasoningFieldAlways writes the field on every assistant message with
	// calls, empty if there is no reasoning.
	ReasoningFieldAlways bool
	// ToolResultName: tool messages carry the tool's name.
	ToolResultName bool
	// CacheBreakpoints: the model accepts explicit cache breakpoints, in a dialect
	// that makes them optional.
	CacheBreakpoints bool
	// MidSystem: the model accepts system messages inside the conversation, in a
	// dialect that makes that optional.
	MidSystem bool
	// NoReasoning: the server does not accept reasoning in the history, not even its own.
	NoReasoning bool
	// NoOldReasoning: reasoning from before the last user message is not sent.
	NoOldReasoning bool
	// NoPrefill: a conversation must not end with an assistant message.
	NoPrefill bool
	// Alternate: user and assistant messages must alternate, even if the dialect
	// allows consecutive messages of one role.
	Alternate bool
	// SplitCalls: each call has its own message, directly followed by its result.
	SplitCalls bool
	// AssistantAfterTools: only an assistant message may follow tool results.
	AssistantAfterTools bool
	// NoDummySignature: calls without a signature are accepted, although the dialect
	// otherwise requires one (Limits.DummySignature).
	NoDummySignature bool
	// ClosedSchemas: the server accepts tool and output schemas only in the closed
	// subset of its dialect, such as "gemini.parameters" (quirk A2).
	ClosedSchemas bool
	// ToolSchema names the subset of JSON Schema that the server accepts in a tool, if
	// it is not the dialect's, such as "moonshot.tool"; all.Profile returns its rules.
	// An unknown name is reported and has no effect.
	ToolSchema string
	// NoCallIDs: calls and results carry no ids; they are matched by name and order.
	NoCallIDs bool
	// NoResultMedia: tool results carry no media, although the dialect allows it; the
	// media is sent next to them.
	NoResultMedia bool
	// ThinkingBudgets: the model accepts a thinking budget but no effort, in a dialect
	// whose newer models accept an effort.
	ThinkingBudgets bool
	// NoThinkingBudgets: the model accepts no thinking budget; an effort is sent
	// instead.
	NoThinkingBudgets bool
	// NoReasoningWithTools: the model does not call tools while it reasons; reasoning is
	// switched off for requests with tools (quirk E12).
	NoReasoningWithTools bool
	// NoThinking: the model does not reason, or accepts no reasoning settings; they are
	// dropped.
	NoThinking bool
	// ThinksByDefault: the model reasons for requests that do not set reasoning.
	ThinksByDefault bool
	// NoThinkingUnstreamed: the model reasons only in streamed responses; reasoning is
	// switched off for others.
	NoThinkingUnstreamed bool
	// ReasoningOff is the field and value that switch reasoning off on an OpenAI Chat
	// server that does not use the effort none for that, such as
	// "thinking.type=disabled" or "enable_thinking=false".
	ReasoningOff string
	// NoThinkLevels: the model accepts true or false for think, but no level, in a dialect
	// whose models differ in that.
	NoThinkLevels bool
	// MinThinkingBudget and MaxThinkingBudget bound a thinking budget in tokens; zero
	// means the bounds of the dialect.
	MinThinkingBudget int64
	MaxThinkingBudget int64
	// Efforts lists the efforts that the model accepts, separated by spaces; "none" means
	// that reasoning can be switched off. Other efforts are sent as the nearest of them
	// (quirk G10). Empty means all efforts of the dialect.
	Efforts string
	// EffortField is the field of additionalModelRequestFields for the effort, in a dialect
	// whose models differ in that: "reasoning_effort" or "reasoningConfig". Empty means
	// the form of Claude.
	EffortField string
	// ID overrides the dialect's rule for call ids; nil means no override.
	ID *IDRule
	// Name overrides the dialect's rule for tool names; nil means no override.
	Name *NameRule
}

// AcceptsMedia reports whether the model and its server accept a kind of media. A
// plain-text document ([dragoman.Media].Text) is text, which they always accept.
func (c *Capabilities) AcceptsMedia(kind string) bool {
	if c.NoImages || c.NoFiles && kind == codes.MediaFile {
		return false
	}
	for word := range strings.FieldsSeq(c.RefusesMedia) {
		if word == kind {
			return false
		}
	}
	return true
}

// NameRule describes the tool names that a wire accepts.
type NameRule struct {
	// First and Rest list the characters allowed at the start and after it, as
	// ranges ("a-zA-Z_"). An empty First means the same as Rest; an empty Rest
	// allows everything.
	First string
	Rest  string
	// Max is the maximum length in bytes; 0 means no limit.
	Max int
}

// Allows reports whether the wire accepts a tool name unchanged.
func (r NameRule) Allows(name string) bool {
	if name == "" || (r.Max > 0 && len(name) > r.Max) {
		return false
	}
	first := r.First
	if first == "" {
		first = r.Rest
	}
	for i := 0; i < len(name); i++ {
		set := r.Rest
		if i == 0 {
			set = first
		}
		if !textkit.InSet(set, name[i]) {
			return false
		}
	}
	return true
}

// IDRule describes the call ids that a wire accepts.
type IDRule struct {
	// Chars lists the allowed characters, as ranges; empty allows everything.
	Chars string
	// Max is the maximum length in bytes; 0 means no limit.
	Max int
	// Exact is the only length allowed; 0 means any up to Max.
	Exact int
	// Numbered: ids have the form "functions.<name>:<n>", where n counts the calls of
	// the conversation from 0. Ids that the target did not create are rewritten to
	// this form, because its model was trained on nothing else (Kimi K2).
	Numbered bool
}

// Allows reports whether the wire accepts a call id unchanged.
func (r IDRule) Allows(id string) bool {
	if id == "" || (r.Max > 0 && len(id) > r.Max) || (r.Exact > 0 && len(id) != r.Exact) {
		return false
	}
	for i := 0; i < len(id); i++ {
		if !textkit.InSet(r.Chars, id[i]) {
			return false
		}
	}
	return true
}

// Limits describe the rules of a dialect for other packages.
type Limits struct {
	Dialect dragoman.Dialect
	Name    NameRule
	ID      IDRule
	// ModelInURL: a request names its model in the URL, not in its body.
	ModelInURL bool
	// SchemaFormats lists the schema formats that the wire accepts unchanged.
	SchemaFormats []dragoman.Format
	// ToolSchema and StrictSchema name the subsets of JSON Schema that the wire accepts
	// in a tool, and in a tool with constrained decoding; all.Profile returns their
	// rules. StrictSchema is empty if the wire has no such tools.
	ToolSchema   string
	StrictSchema string
	// MediaRoles lists the roles whose messages may carry media.
	MediaRoles []dragoman.Role
	// MaxTools is the maximum number of tools; 0 means unknown.
	MaxTools int
	// MaxStopSequences is the maximum number of stop sequences; 0 means unknown.
	MaxStopSequences int
	// MaxCacheBreakpoints is the maximum number of explicit breakpoints; 0 means
	// that the wire does not support them.
	MaxCacheBreakpoints int
	// Replay defines which fields of an origin must match to send native
	// messages, item ids and opaque reasoning back.
	Replay ReplayRules
	// ResultMedia: tool results may carry media.
	ResultMedia bool
	// ErrorFlag: tool results carry an error flag; otherwise errors are
	// prefixed with "ERROR: ".
	ErrorFlag bool
	// ArgumentsAsString: call arguments are JSON in a string, not an object.
	ArgumentsAsString bool
	// GroupedResults: all results of a turn are in one message, before other content.
	GroupedResults bool
	// LooseResults: a result may be anywhere after its call. Otherwise the results of a
	// turn directly follow it.
	LooseResults bool
	// OrderedResults: the results of a turn have the order of its calls. Otherwise any
	// order is allowed.
	OrderedResults bool
	// SeparateMessages: messages that came from this dialect are never merged, so
	// results follow the single message with their calls. Otherwise they follow the
	// whole run of assistant messages.
	SeparateMessages bool
	// ResultNames: a result carries the name of its tool.
	ResultNames bool
	// UniqueIDs: a call id must not be reused in a later turn.
	UniqueIDs bool
	// AsyncCalls: the wire has calls whose result the model does not wait for.
	AsyncCalls bool
	// ToolsForHistory: a conversation with calls and results requires declared
	// tools.
	ToolsForHistory bool
	// NoBlankText: the API refuses a text of only white space, and a message
	// without content.
	NoBlankText bool
	// UserFirst: the first message after system messages must be a user message.
	UserFirst bool
	// NoMidSystem: system messages are allowed only before the conversation, unless
	// the model accepts others (Capabilities.MidSystem).
	NoMidSystem bool
	// SignedReasoning: reasoning is sent back only with its signature or, if it was
	// redacted, in its encrypted form.
	SignedReasoning bool
	// ReasoningFirst: reasoning is sent back only if other content follows it in its
	// turn.
	ReasoningFirst bool
	// ReasoningInLoop: with a thinking budget, a turn whose calls have new results must
	// start with its reasoning. Without that reasoning no budget may be requested.
	ReasoningInLoop bool
	// DummySignature is the signature of the first call of an unsigned turn, if the
	// wire requires one; empty if it does not. It has no origin: an encoder writes it
	// unchanged.
	DummySignature string
	// MediaKinds lists the kinds of media that the wire supports; nil means that the
	// encoder decides.
	MediaKinds []string
	// NoMediaURL and NoMediaFileID: media is sent with its content, not by URL or by the
	// id of a stored file.
	NoMediaURL    bool
	NoMediaFileID bool
	// StorageURLs lists the prefixes of URLs in this provider's own storage ("s3://").
	// The provider can fetch them even if the wire accepts no other URLs; other
	// providers cannot.
	StorageURLs []string
	// MaxImages and MaxDocuments are the maximum numbers of images and of files in one
	// message of the wire, including its results; 0 means unknown.
	MaxImages    int
	MaxDocuments int
	// TextWithFiles: a user message with a file must have text.
	TextWithFiles bool
	// StoredBy names the request fields, and the types of opaque parts, that refer to a
	// conversation stored by the server. If a request has one of them, a result may
	// belong to a call that the request does not contain.
	StoredBy []string
	// StrippedOnReplay lists native fields that are never sent back.
	StrippedOnReplay []string
	// GrowthExceptions lists the cases in which appending to a conversation may change an
	// earlier element of the encoded list, each with its reason.
	GrowthExceptions []string
}

// ReplayRules define what must match before native state is sent back.
type ReplayRules struct {
	Messages  Match
	ItemIDs   Match
	Reasoning Match
}
