package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
)

// stopOf reads a stop reason. The mapping is total: a word in no table is
// StopUnknown, after which nothing runs (quirk B20). Words of other APIs are
// those that servers which speak this dialect let slip.
func stopOf(word string) dragoman.StopReason {
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
	default:
		return dragoman.StopUnknown
	}
}

// wordOf writes a stop: in the word this dialect gave it, else in the nearest
// one it has. exact is false when the word says something else. calls says
// that the response holds some: after a stop that lets nothing run, clients
// must read a word that keeps them from running calls.
func wordOf(s dragoman.Stop, own, calls bool) (word string, exact bool) {
	if own && s.Native != "" && meant(s, calls) {
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
	case dragoman.StopRefusal:
		return "refusal", true
	case dragoman.StopContentFilter:
		return "refusal", false
	case dragoman.StopPause:
		return "pause_turn", true
	case dragoman.StopCompaction:
		return "compaction", true
	default: // malformed call, error, cancelled, unknown
		if calls {
			return "max_tokens", false
		}
		return "end_turn", false
	}
}

// meant reports whether the native word of a stop still says what the stop
// does, by itself or with the calls beside it.
func meant(s dragoman.Stop, calls bool) bool {
	word, n := stopOf(s.Native), 0
	if calls {
		n = 1
	}
	return word == s.Reason || dragoman.DeriveStop(word, n, true) == s.Reason
}
