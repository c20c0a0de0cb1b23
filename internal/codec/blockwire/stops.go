package blockwire

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
)

// StopOf returns the stop reason for a value on the wire. The mapping is total: an
// unknown value is StopUnknown, after which no calls run (quirk B20). It includes
// values of other APIs that servers and models of these dialects send by mistake.
func (f *Format) StopOf(word string) dragoman.StopReason {
	switch word {
	case "":
		return dragoman.StopNone
	case "end_turn", "stop", "eos", "end":
		return dragoman.StopEnd
	case "tool_use", "tool_calls", "function_call":
		return dragoman.StopToolCalls
	case "max_tokens", "model_context_window_exceeded", "length":
		return dragoman.StopLength
	case "stop_sequence":
		return dragoman.StopSequence
	case "pause_turn":
		return dragoman.StopPause
	case "refusal":
		return dragoman.StopRefusal
	case "content_filter", "content_filtered":
		return dragoman.StopContentFilter
	case "compaction":
		return dragoman.StopCompaction
	case "error":
		return dragoman.StopError
	}
	if reason, ok := f.StopWords[word]; ok {
		return reason
	}
	return dragoman.StopUnknown
}

// StopValue returns the value to write for a stop: the original value if the stop came
// from this dialect, otherwise the nearest one. exact is false if the value has another
// meaning. calls means that the response has calls: for a stop after which no calls
// run, the value must then keep clients from running them.
func (f *Format) StopValue(s dragoman.Stop, own, calls bool) (word string, exact bool) {
	if own && s.Native != "" && f.nativeMatches(s, calls) {
		return s.Native, true
	}
	switch s.Reason {
	case dragoman.StopNone, dragoman.StopEnd:
		return "end_turn", true
	case dragoman.StopToolCalls:
		return "tool_use", true
	case dragoman.StopLength:
		return "max_tokens", true
	case dragoman.StopSequence:
		return "stop_sequence", true
	default:
		return f.StopWord(s.Reason, calls)
	}
}

// nativeMatches reports whether the native value of a stop still matches its reason, by
// itself or together with the calls.
func (f *Format) nativeMatches(s dragoman.Stop, calls bool) bool {
	word, n := f.StopOf(s.Native), 0
	if calls {
		n = 1
	}
	return word == s.Reason || turnrules.StopReason(word, n, true) == s.Reason
}
