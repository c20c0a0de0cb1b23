package openaichat

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// stopOf reads a finish reason. The mapping is total: a word in no table is
// StopUnknown, after which nothing runs (quirk B20).
func stopOf(word string) dragoman.StopReason {
	switch word {
	case "":
		return dragoman.StopNone
	case "stop", "eos", "end", "end_turn", "stop_sequence", "complete", "completed":
		return dragoman.StopEnd
	case "tool_calls", "tool_call", "tool_use", "function_call":
		return dragoman.StopToolCalls
	case "length", "max_tokens", "model_length", "max_output_tokens":
		return dragoman.StopLength
	case "content_filter", "content_filtered", "sensitive", "safety":
		return dragoman.StopContentFilter
	case "refusal":
		return dragoman.StopRefusal
	case "error", "network_error", "insufficient_system_resource":
		return dragoman.StopError
	case "abort", "cancelled":
		return dragoman.StopCancelled
	case "malformed_function_call", "malformed_tool_use", "malformed_tool_call":
		return dragoman.StopMalformedCall
	default:
		return dragoman.StopUnknown
	}
}

// hiddenMalformed reports whether a router's native reason says that the call
// was malformed, whatever the finish reason claims (quirk B21).
func hiddenMalformed(native string) bool {
	switch strings.ToUpper(native) {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		return true
	default:
		return false
	}
}

// wordOf writes a stop: in the word this dialect gave it, else in the nearest
// one it has.
func wordOf(s dragoman.Stop, own bool) (word string, exact bool) {
	if own && s.Native != "" {
		return s.Native, true
	}
	switch s.Reason {
	case dragoman.StopEnd, dragoman.StopNone:
		return "stop", true
	case dragoman.StopToolCalls:
		return "tool_calls", true
	case dragoman.StopLength:
		return "length", true
	case dragoman.StopContentFilter:
		return "content_filter", true
	case dragoman.StopSequence:
		return "stop", false
	case dragoman.StopRefusal:
		return "content_filter", false
	case dragoman.StopError, dragoman.StopCancelled, dragoman.StopMalformedCall:
		return "error", false
	default:
		return "stop", false
	}
}

// settleStop derives the stop of one choice and marks the calls that must not
// run after it (quirks B18, B19, C34).
func settleStop(word, routed string, terminal bool, calls []*dragoman.ToolCall) dragoman.Stop {
	reason := stopOf(word)
	if hiddenMalformed(routed) {
		reason = dragoman.StopMalformedCall
	}
	whole := 0
	for _, c := range calls {
		if c.Problem == nil || c.Problem.Code != dragoman.ProblemTruncated {
			whole++
		}
	}
	reason = dragoman.DeriveStop(reason, whole, terminal)
	if !reason.Runs() {
		for i, c := range calls {
			switch {
			case c.Problem != nil:
			case reason == dragoman.StopLength && i == len(calls)-1:
				c.Problem = &dragoman.CallProblem{
					Code: dragoman.ProblemTruncated, Offset: -1,
					Message: "the output limit cut the response, so the arguments may be incomplete; make the call again, shorter",
				}
			default:
				c.Problem = &dragoman.CallProblem{
					Code: dragoman.ProblemStopped, Offset: -1,
					Message: "the response ended with " + string(reason) + "; nothing runs after that",
				}
			}
		}
	}
	return dragoman.Stop{Reason: reason, Native: word}
}
