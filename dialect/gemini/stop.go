package gemini

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stopreason"
)

// stopOf reads a finish reason. The mapping is total: a word in no table is
// StopUnknown, after which nothing runs (quirk B20). The numbers are those that
// both of the API's servers agree on.
func stopOf(word string) dragoman.StopReason {
	switch word {
	case "":
		return dragoman.StopNone
	case "STOP", "1", "stop":
		return dragoman.StopEnd
	case "MAX_TOKENS", "2", "length",
		// The request must be sent again before the answer is whole.
		"CONTINUATION":
		return dragoman.StopLength
	case "SAFETY", "3", "RECITATION", "4", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "JAILBREAK",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return dragoman.StopContentFilter
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS": // quirk B21
		return dragoman.StopMalformedCall
	case "OTHER", "5", "IMAGE_OTHER", "NO_IMAGE", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE":
		return dragoman.StopError
	default:
		return dragoman.StopUnknown
	}
}

// forbids reports whether a finish reason is one after which nothing runs.
func forbids(word string) bool { return word != "" && !stopOf(word).Runs() }

// wordOf writes a stop: in the word this dialect gave it where that still says
// so, else in the nearest one there is. exact is false when the word says
// something else. Beside calls, a stop after which nothing runs never becomes
// STOP.
func wordOf(s dragoman.Stop, own bool, calls int) (word string, exact bool) {
	if own && s.Native != "" && stopreason.Derive(stopOf(s.Native), calls, true) == s.Reason {
		return s.Native, true
	}
	switch s.Reason {
	case dragoman.StopNone, dragoman.StopEnd, dragoman.StopToolCalls:
		return "STOP", true
	case dragoman.StopSequence:
		if calls > 0 {
			return "OTHER", false
		}
		return "STOP", false
	case dragoman.StopPause:
		return "STOP", false
	case dragoman.StopLength:
		return "MAX_TOKENS", true
	case dragoman.StopContentFilter:
		return "SAFETY", true
	case dragoman.StopRefusal:
		return "SAFETY", false
	case dragoman.StopMalformedCall:
		return "MALFORMED_FUNCTION_CALL", true
	case dragoman.StopError:
		return "OTHER", true
	default: // cancelled, compaction, unknown
		return "OTHER", false
	}
}
