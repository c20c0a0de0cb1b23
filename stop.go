package dragoman

// StopReason says why a model stopped, in our words: one of the constants from
// [StopNone] to [StopUnknown].
type StopReason string

// The stop reasons. The zero value means that no reason was given.
const (
	StopNone      StopReason = ""
	StopEnd       StopReason = "stop"
	StopToolCalls StopReason = "tool_calls"
	StopLength    StopReason = "length"
	// StopSequence: a stop sequence was written; Stop.Sequence holds it.
	StopSequence      StopReason = "stop_sequence"
	StopContentFilter StopReason = "content_filter"
	StopRefusal       StopReason = "refusal"
	// StopPause: the provider paused its own tools; ask again with the content
	// unchanged.
	StopPause         StopReason = "pause"
	StopMalformedCall StopReason = "malformed_tool_call"
	StopError         StopReason = "error"
	// StopCancelled: the response was cancelled.
	StopCancelled StopReason = "cancelled"
	// StopCompaction: the response holds nothing but a compacted history.
	StopCompaction StopReason = "compaction"
	// StopUnknown: a word in no table. Nothing runs after it.
	StopUnknown StopReason = "unknown"
)

// Stop is why a response ended: derived from its content and the provider's
// word, never trusted from the word alone.
//
//stored:value stop
type Stop struct {
	Reason StopReason `json:"reason,omitzero"`
	// Native is the provider's word.
	Native string `json:"native,omitzero"`
	// Sequence is the stop sequence that was written, for StopSequence.
	Sequence string `json:"sequence,omitzero"`
	// Details is the native record that explains the stop; replayed to its
	// dialect.
	Details *Native `json:"details,omitzero"`
}

// Runs reports whether calls may run after this stop.
func (r StopReason) Runs() bool { return r == StopEnd || r == StopToolCalls || r == StopPause }
