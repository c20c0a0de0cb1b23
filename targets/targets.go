// Package targets describes the model that a request is written for: its dialect, where
// the model or its server deviates from it ([Capabilities]), and what the dialect itself
// requires ([Limits]). Codecs and package history read it; package models has the
// capabilities of known models.
package targets

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/text/charset"
)

// Target is what a request is encoded for: a dialect and what the model and
// server behind it can do. The zero Capabilities are those of the dialect's
// own vendor.
type Target struct {
	Dialect dragoman.Dialect
	// Provider and Scope say who serves the model, as those of an [dragoman.Origin] do;
	// empty means unknown.
	Provider string
	Scope    string
	// Model is whom the request goes to, which decides what of the history may be
	// replayed; empty means [dragoman.Request].Model. It does not name the model in the
	// request: Request.Model does. Nor does it set Caps; package models has the
	// capabilities of known models.
	Model string
	Caps  Capabilities
}

// Origin returns the origin of what this target mints.
func (t Target) Origin() dragoman.Origin {
	return dragoman.Origin{Dialect: t.Dialect, Provider: t.Provider, Scope: t.Scope, Model: t.Model}
}

// Capabilities are deviations of one model or server from its dialect, as
// data. The zero value means the dialect's vendor at its current version; each
// field says what it turns on or off.
type Capabilities struct {
	// NoTools: the model cannot call tools.
	NoTools bool
	// NoStrict: the server rejects a strict flag; none is sent.
	NoStrict bool
	// StrictTools: the model takes a strict flag where the models of its dialect
	// differ in that; otherwise none is sent there (quirk A31).
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
	// RefusesMedia lists the kinds of media that the model does not accept, with spaces
	// between them: image, audio, video, file. Each is replaced by a note (quirk D14).
	RefusesMedia string
	// NoFiles: the server takes no files, although its dialect has them. Each file is
	// replaced by a note; plain-text documents are sent as text.
	NoFiles bool
	// NoParallelFlag: the parallel flag is not sent.
	NoParallelFlag bool
	// NoStructuredOutput: no output schema is sent.
	NoStructuredOutput bool
	// NoOutputSchema: the server takes JSON as an output format, but no schema of
	// it; that is asked for in the instructions instead.
	NoOutputSchema bool
	// NoOutputWithTools: the model refuses an output format beside tools, or
	// breaks one after tool turns; it is asked for in the instructions instead
	// (quirks F1, F8, F9).
	NoOutputWithTools bool
	// NoOutputSchemaStreamed: the server refuses an output schema in a streamed request;
	// the schema is sent in the instructions instead.
	NoOutputSchemaStreamed bool
	// NoMixedTools: functions cannot be combined with tools that the provider
	// runs; only functions are sent (quirk A44).
	NoMixedTools bool
	// Refuses lists request settings that the model rejects or ignores, with spaces
	// between them; they are dropped. RefusesThinking lists those that it rejects while
	// it reasons. The words: temperature, top_p, top_k, frequency_penalty,
	// presence_penalty, stop, seed, n, logit_bias, logprobs, top_logprobs,
	// response_format, reasoning_format, max_tokens (max_completion_tokens is sent instead),
	// prefill (in RefusesThinking only: a thinking budget is dropped if the conversation ends
	// with assistant text),
	// reasoning_effort=none (a request to switch reasoning off is dropped), and
	// reasoning_effort=xhigh+off (with reasoning off, xhigh and max become high).
	Refuses         string
	RefusesThinking string
	// Temperature is the range of temperatures that the model accepts, such as "0 1.5";
	// other values are moved into it. Empty means the range of the dialect.
	Temperature string
	// TopK: the server accepts top_k, although the vendor of its dialect does not.
	TopK bool
	// AnyMedia: the server may accept kinds of media that the vendor of its dialect
	// refuses; they are sent.
	AnyMedia bool
	// NoSampling: the model rejects temperature and the like.
	NoSampling bool
	// OneSampler: the model takes temperature or top_p, and not both. Of two that differ
	// from what holds without them, temperature is kept.
	OneSampler bool
	// NoStreamOptions: the server rejects stream_options.
	NoStreamOptions bool
	// NoCacheBreakpoints: the model rejects cache breakpoints; none is sent.
	NoCacheBreakpoints bool
	// DefaultMaxTokens is the bound of an answer that is written where a request has none
	// and the wire demands one; zero means the dialect's. The model takes at least that.
	DefaultMaxTokens int64
	// LegacyMaxTokens: max_tokens instead of max_completion_tokens.
	LegacyMaxTokens bool
	// ForcedChoice says when the model accepts a tool choice that forces a call: empty
	// means always; else "without_thinking" or "never".
	ForcedChoice string
	// ReasoningField is the member in which this server takes reasoning back
	// ("reasoning_content", "reasoning"). Empty means none, except that
	// reasoning goes back to the server that wrote it in the member it used.
	ReasoningField string
	// ReasoningFieldAlways writes the member on every assistant message with
	// calls, empty where there is no reasoning.
	ReasoningFieldAlways bool
	// ToolResultName: tool messages carry the tool's name.
	ToolResultName bool
	// CacheBreakpoints: the model takes explicit cache breakpoints where its
	// dialect makes them optional.
	CacheBreakpoints bool
	// MidSystem: the model takes system messages inside the conversation where
	// its dialect makes that optional.
	MidSystem bool
	// NoReasoning: the server takes no reasoning back, not even its own.
	NoReasoning bool
	// NoOldReasoning: reasoning from before the last user message is not sent
	// back.
	NoOldReasoning bool
	// NoPrefill: a conversation may not end with the assistant's words.
	NoPrefill bool
	// Alternate: messages of user and assistant must take turns even where the
	// dialect lets neighbours have one role.
	Alternate bool
	// SplitCalls: each call stands in a message of its own, its result directly
	// behind it.
	SplitCalls bool
	// AssistantAfterTools: only an assistant message may follow tool results.
	AssistantAfterTools bool
	// NoDummySignature: calls without a signature pass as they are where the
	// dialect otherwise demands one (Limits.DummySignature).
	NoDummySignature bool
	// ClosedSchemas: the server takes tool and output schemas only in the closed
	// subset of its dialect, such as "gemini.parameters" (quirk A2).
	ClosedSchemas bool
	// ToolSchema names the subset of JSON Schema that the server takes in a tool
	// where that is not the dialect's, such as "moonshot.tool": all.Profile gives
	// the rules behind it. A name that nothing has is reported, and changes
	// nothing.
	ToolSchema string
	// NoCallIDs: calls and results carry no ids; they pair by name and order.
	NoCallIDs bool
	// NoResultMedia: tool results carry no media, where those of the dialect
	// may; it stands beside them.
	NoResultMedia bool
	// ThinkingBudgets: the model takes a thinking budget and no effort, where
	// newer models of its dialect take an effort.
	ThinkingBudgets bool
	// NoThinkingBudgets: the model takes no thinking budget; an effort is sent
	// instead.
	NoThinkingBudgets bool
	// NoReasoningWithTools: the model calls no tools while it reasons; where there
	// are tools, reasoning is switched off (quirk E12).
	NoReasoningWithTools bool
	// NoThinking: the model does not reason, or takes no settings for it; reasoning
	// settings are dropped.
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
	// NoThinkLevels: the model accepts true or false for think, but no level, where the
	// models of its dialect differ in that.
	NoThinkLevels bool
	// MinThinkingBudget and MaxThinkingBudget bound a thinking budget in tokens; zero
	// means the bounds of the dialect.
	MinThinkingBudget int64
	MaxThinkingBudget int64
	// Efforts are the efforts that the model takes, with spaces between them:
	// "none" is that reasoning can be switched off. Another is sent as the nearest of
	// them (quirk G10). Empty means all that the dialect has.
	Efforts string
	// EffortField is the field of additionalModelRequestFields that takes the effort, where
	// the models of a dialect differ in that: "reasoning_effort" or "reasoningConfig". Empty
	// means the form of Claude.
	EffortField string
	// ID overrides the dialect's rule for call ids; nil keeps it.
	ID *IDRule
	// Name overrides the dialect's rule for tool names; nil keeps it.
	Name *NameRule
}

// TakesMedia reports whether the model and its server accept a kind of media. A
// plain-text document ([dragoman.Media].Text) is text, which they always accept.
func (c *Capabilities) TakesMedia(kind string) bool {
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

// NameRule says which tool names a wire accepts.
type NameRule struct {
	// First and Rest list the characters allowed at the start and after it, as
	// ranges ("a-zA-Z_"). An empty First means the same as Rest; an empty Rest
	// allows everything.
	First string
	Rest  string
	// Max is the greatest length in bytes; 0 means no limit.
	Max int
}

// Allows reports whether the wire accepts a tool name as it is.
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
		if !charset.Has(set, name[i]) {
			return false
		}
	}
	return true
}

// IDRule says which call ids a wire accepts.
type IDRule struct {
	// Chars lists the characters allowed, as ranges; empty allows everything.
	Chars string
	// Max is the greatest length in bytes; 0 means no limit.
	Max int
	// Exact is the only length allowed; 0 means any up to Max.
	Exact int
	// Numbered: an id says which call of the conversation it is, as
	// "functions.<name>:<n>" with n from 0. Ids that the target did not mint
	// itself are written so, because its model was trained on nothing else
	// (Kimi K2).
	Numbered bool
}

// Allows reports whether the wire accepts a call id as it is.
func (r IDRule) Allows(id string) bool {
	if id == "" || (r.Max > 0 && len(id) > r.Max) || (r.Exact > 0 && len(id) != r.Exact) {
		return false
	}
	for i := 0; i < len(id); i++ {
		if !charset.Has(r.Chars, id[i]) {
			return false
		}
	}
	return true
}

// Limits are a dialect's rules as data that other packages read.
type Limits struct {
	Dialect dragoman.Dialect
	Name    NameRule
	ID      IDRule
	// ModelInURL: a request names its model in the URL, not in its body.
	ModelInURL bool
	// SchemaFormats are the schema formats the wire takes as they are.
	SchemaFormats []dragoman.Format
	// ToolSchema and StrictSchema name the subset of JSON Schema the wire takes
	// in a tool, and in one that asks for constrained decoding; all.Profile
	// gives the rules behind the name. A wire without such tools has no
	// StrictSchema.
	ToolSchema   string
	StrictSchema string
	// MediaRoles are the roles whose messages may carry media.
	MediaRoles []dragoman.Role
	// MaxTools is the greatest number of tools; 0 means unknown.
	MaxTools int
	// MaxStopSequences is the greatest number of stop sequences; 0 means none
	// is known.
	MaxStopSequences int
	// MaxCacheBreakpoints is the greatest number of explicit breakpoints; 0
	// means the wire has none.
	MaxCacheBreakpoints int
	// Replay says which fields of an origin must match to send native
	// messages, item ids and opaque reasoning back.
	Replay ReplayRules
	// ResultMedia: tool results may carry media.
	ResultMedia bool
	// ErrorFlag: tool results carry an error flag; otherwise errors are
	// prefixed with "ERROR: ".
	ErrorFlag bool
	// ArgumentsAsString: call arguments are JSON in a string, not an object.
	ArgumentsAsString bool
	// GroupedResults: all results of a turn stand in one message, first.
	GroupedResults bool
	// LooseResults: a result may stand anywhere behind its call; otherwise the
	// results of a turn follow it directly, before anything else.
	LooseResults bool
	// OrderedResults: the results of a turn stand in the order of its calls;
	// otherwise in any.
	OrderedResults bool
	// SeparateMessages: messages that came from this dialect are never joined, so
	// that results stand behind the one message with their calls; otherwise
	// behind the run of assistant messages around it.
	SeparateMessages bool
	// ResultNames: a result carries the name of the tool it came from.
	ResultNames bool
	// UniqueIDs: no call id may come back in a later turn.
	UniqueIDs bool
	// AsyncCalls: the wire knows calls whose result the model does not wait for.
	AsyncCalls bool
	// ToolsForHistory: calls and results in the conversation demand that tools
	// are declared.
	ToolsForHistory bool
	// NoBlankText: a text of nothing but white space is refused, and so is a
	// message without content.
	NoBlankText bool
	// UserFirst: the first message behind the system's must be the user's.
	UserFirst bool
	// NoMidSystem: system messages stand before the conversation only, unless
	// the model takes others (Capabilities.MidSystem).
	NoMidSystem bool
	// SignedReasoning: reasoning goes back only with its signature, or as the
	// encrypted form of one that was withheld.
	SignedReasoning bool
	// ReasoningLeads: reasoning goes back only with something behind it in its
	// turn.
	ReasoningLeads bool
	// ReasoningInLoop: with a thinking budget, a turn whose calls are being
	// answered begins with its reasoning; without it no budget may be asked for.
	ReasoningInLoop bool
	// DummySignature is what the first call of a model's turn carries where it
	// has no signature and the wire demands one; empty where it does not. Such
	// a signature has no origin: an encoder writes it as it is.
	DummySignature string
	// MediaKinds are the kinds of media the wire has a place for; nil means that
	// the encoder knows.
	MediaKinds []string
	// NoMediaURL and NoMediaFileID: media is sent with its content, not by URL,
	// nor by the id of a file that a provider stores.
	NoMediaURL    bool
	NoMediaFileID bool
	// StorageURLs are what the URLs of this provider's own storage begin with
	// ("s3://"): only it can fetch from there, and it can even where the wire
	// takes no other URL.
	StorageURLs []string
	// MaxImages and MaxDocuments are the greatest numbers of images and of files
	// in one message of the wire, its results included; 0 means that none is
	// known.
	MaxImages    int
	MaxDocuments int
	// TextBesideFiles: a user message with a file needs a text.
	TextBesideFiles bool
	// StoredBy names the members of a request, and the types of opaque parts,
	// that bring in conversation kept by the server: where there is one, a
	// result may answer a call that the request does not show.
	StoredBy []string
	// StrippedOnReplay lists native members that are never sent back.
	StrippedOnReplay []string
	// GrowthExceptions lists where appending to a conversation may change an
	// earlier element of the encoded list, each with its reason.
	GrowthExceptions []string
}

// ReplayRules says what must match before native state goes back.
type ReplayRules struct {
	Messages  Match
	ItemIDs   Match
	Reasoning Match
}
