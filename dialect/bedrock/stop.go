package bedrock

import (
	dragoman "github.com/dragoman-go/dragoman"
)

// stopOf reads a stop reason. The mapping is total: a word in no table is
// StopUnknown, after which nothing runs (quirk B20). Words of other APIs are
// those that the models behind this one let slip.
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
	case "guardrail_intervened", "content_filtered", "content_filter":
		return dragoman.StopContentFilter
	case "malformed_tool_use":
		return dragoman.StopMalformedCall
	case "malformed_model_output", "error":
		return dragoman.StopError
	case "refusal":
		return dragoman.StopRefusal
	case "pause_turn":
		return dragoman.StopPause
	case "compaction":
		return dragoman.StopCompaction
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
	case dragoman.StopContentFilter:
		return "content_filtered", true
	case dragoman.StopRefusal:
		return "content_filtered", false
	case dragoman.StopMalformedCall:
		return "malformed_tool_use", true
	case dragoman.StopError:
		return "malformed_model_output", true
	case dragoman.StopCancelled:
		return "malformed_model_output", false
	case dragoman.StopPause:
		if calls {
			return "tool_use", false
		}
		return "end_turn", false
	default: // compaction, unknown
		if calls {
			return "malformed_model_output", false
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
