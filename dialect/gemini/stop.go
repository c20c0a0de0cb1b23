package gemini

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
)

// decodeStop converts a finish reason. Every value has a result: an unknown one is
// StopUnknown, after which no call runs (quirk B20). Only the numbers on which
// both of the API's servers agree are known.
func decodeStop(reason string) dragoman.StopReason {
	switch reason {
	case "":
		return dragoman.StopNone
	case "STOP", "1", "stop":
		return dragoman.StopEnd
	case "MAX_TOKENS", "2", "length",
		// The response is complete only after another request.
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

// blocksCalls reports whether a finish reason keeps calls from running.
func blocksCalls(reason string) bool { return reason != "" && !decodeStop(reason).Runs() }

// encodeStop returns the finish reason to write for a stop: the native one if it
// still means the same, otherwise the nearest. exact is false if the result
// means something else. If there are calls, a stop that blocks them never
// becomes STOP.
func encodeStop(s dragoman.Stop, own bool, calls int) (reason string, exact bool) {
	if own && s.Native != "" && turnrules.StopReason(decodeStop(s.Native), calls, true) == s.Reason {
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
	default: // canceled, compaction, unknown
		return "OTHER", false
	}
}
