// Package codes defines the values of string fields in the public packages that only
// packages of this module compare.
package codes

// The statuses of messages, calls and results. The zero value means complete.
const (
	StatusComplete   = ""
	StatusIncomplete = "incomplete"
	StatusInProgress = "in_progress"
)

// The values of targets.Capabilities.ForcedChoice. The zero value means always.
const (
	ForcedAlways          = ""
	ForcedWithoutThinking = "without_thinking"
	ForcedNever           = "never"
)

// The codes of dragoman.CallProblem.
const (
	// ProblemInvalidJSON: the arguments are not JSON.
	ProblemInvalidJSON = "invalid_json"
	// ProblemDuplicateKey: an object in the arguments has a duplicate key, so that two
	// readers could see different values.
	ProblemDuplicateKey = "duplicate_key"
	// ProblemNotObject: the arguments are JSON, but not an object.
	ProblemNotObject = "not_object"
	// ProblemTruncated: the output limit or the end of the stream truncated the call.
	ProblemTruncated = "truncated"
	// ProblemNoName: the call has no tool name.
	ProblemNoName = "no_name"
	// ProblemUnreadable: a field that determines what runs has the wrong type.
	ProblemUnreadable = "unreadable"
	// ProblemStopped: the response ended with a reason after which no calls run.
	ProblemStopped = "stopped"
)

// The kinds of part: dragoman.Part.Kind and dragoman.PartDelta.Kind.
const (
	KindText       = "text"
	KindReasoning  = "reasoning"
	KindMedia      = "media"
	KindToolCall   = "tool_call"
	KindToolResult = "tool_result"
	KindRefusal    = "refusal"
	KindData       = "data"
	KindOpaque     = "opaque"
)

// The values of dragoman.Media.Media.
const (
	MediaImage = "image"
	MediaAudio = "audio"
	MediaVideo = "video"
	MediaFile  = "file"
)

// The values of dragoman.ToolSpec.Kind.
const (
	ToolFunction = ""
	ToolFreeform = "freeform"
	ToolHosted   = "hosted"
)

// The values of dragoman.ToolSpec.Strict and dragoman.OutputFormat.Strict.
const (
	StrictOff   = ""
	StrictOn    = "on"
	StrictAuto  = "auto"
	StrictUnset = "unset"
)

// The values of dragoman.ToolCall.Payload and dragoman.ToolResult.Payload.
const (
	PayloadObject = ""
	PayloadText   = "text"
)

// The values of dragoman.ToolResult.Outcome.
const (
	OutcomeUnknown = ""
	OutcomeOK      = "ok"
	OutcomeError   = "error"
)

// The values of dragoman.OutputFormat.Kind.
const (
	OutputText   = "text"
	OutputJSON   = "json"
	OutputSchema = "json_schema"
)

// The values of dragoman.ReasoningSettings.Mode.
const (
	ReasoningDefault  = ""
	ReasoningOff      = "off"
	ReasoningAdaptive = "adaptive"
	ReasoningBudget   = "budget"
)

// The results of dragoman.Adapter.Kind.
const (
	SchemaObject = "schema"
	CallObject   = "call"
	ResultObject = "result"
)

// ChoiceOpaque is the dragoman.ToolChoice.Mode of a choice that only its own dialect
// understands.
const ChoiceOpaque = "opaque"

// The values of tool.Settings.Failure and tool.Runner.Failure.
const (
	FailureDefault  = ""
	FailureContinue = "continue"
	FailureDegrade  = "degrade"
	FailureFail     = "fail"
)

// The values of tool.Settings.Source.
const (
	FromMCP     = "mcp"
	FromLocal   = ""
	FromHandoff = "handoff"
	FromAgent   = "agent"
)

// The values of tool.Question.Subject.
const (
	SubjectToolCall  = "tool_call"
	SubjectModelCall = "model_call"
	SubjectHandoff   = "handoff"
)

// ChangedWhilePending is the tool.PinChange.Kind of a tool that changed after approval of a
// call was requested.
const ChangedWhilePending = "changed_while_pending"

// What becomes of a tool, in the report of "dragoman lint".
const (
	LintOK       = "ok"
	LintRepaired = "repaired"
	LintDropped  = "dropped"
)

// The values of history.Options.Abandon.
const (
	AbandonNone   = ""
	AbandonPassed = "passed"
	AbandonAll    = "all"
)

// The values of models.Model.How.
const (
	NotFound       = ""
	FoundByName    = "name"
	FoundByPattern = "pattern"
	FoundByFamily  = "family"
)

// The kinds of tool.Key.
const (
	KeyBare       = "bare"
	KeyNamespaced = "namespaced"
	// KeyDeferred is a tool without a namespace that is hidden until a tool search finds it.
	KeyDeferred = "deferred_top_level"
)
