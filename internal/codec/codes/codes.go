// Package codes names the values of string fields of the public packages that only the
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
	// ProblemDuplicateKey: an object in the arguments repeats a key, so that
	// two readers could see two values.
	ProblemDuplicateKey = "duplicate_key"
	// ProblemNotObject: the arguments are JSON, but not an object.
	ProblemNotObject = "not_object"
	// ProblemTruncated: the output limit or the end of the stream cut the call.
	ProblemTruncated = "truncated"
	// ProblemNoName: the call names no tool.
	ProblemNoName = "no_name"
	// ProblemUnreadable: a member that says what runs is not of the type it must
	// be of.
	ProblemUnreadable = "unreadable"
	// ProblemStopped: the response ended in a way after which nothing runs.
	ProblemStopped = "stopped"
)
