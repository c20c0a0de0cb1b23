package dragoman

// StopReason is the vendor-neutral reason why a model stopped: one of the constants from
// [StopNone] to [StopUnknown].
type StopReason string

// The stop reasons. The zero value means that no reason was given.
const (
	StopNone      StopReason = ""
	StopEnd       StopReason = "stop"
	StopToolCalls StopReason = "tool_calls"
	StopLength    StopReason = "length"
	// StopSequence: the model wrote a stop sequence; Stop.Sequence holds it.
	StopSequence      StopReason = "stop_sequence"
	StopContentFilter StopReason = "content_filter"
	StopRefusal       StopReason = "refusal"
	// StopPause: the provider paused its own tools; send the content back unchanged to
	// continue.
	StopPause         StopReason = "pause"
	StopMalformedCall StopReason = "malformed_tool_call"
	StopError         StopReason = "error"
	// StopCanceled: the response was canceled.
	StopCanceled StopReason = "cancelled"
	// StopCompaction: the response contains only a compacted history.
	StopCompaction StopReason = "compaction"
	// StopUnknown: a reason that we do not know. Calls do not run after it.
	StopUnknown StopReason = "unknown"
)

// Stop is the reason why a response ended. It is derived from the content and the provider's
// reason, because the provider's reason alone is not reliable.
//
//stored:value stop
type Stop struct {
	Reason StopReason `json:"reason,omitzero"`
	// Native is the provider's own reason.
	Native string `json:"native,omitzero"`
	// Sequence is the stop sequence that the model wrote, for StopSequence.
	Sequence string `json:"sequence,omitzero"`
	// Details is the native object that explains the stop. It is replayed to its dialect.
	Details *Native `json:"details,omitzero"`
}

// Runs reports whether calls may run after this stop.
func (r StopReason) Runs() bool { return r == StopEnd || r == StopToolCalls || r == StopPause }
