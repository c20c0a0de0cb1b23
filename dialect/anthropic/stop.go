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
	if own && s.Native != "" && (stopOf(s.Native) == s.Reason || dragoman.DeriveStop(stopOf(s.Native), btoi(calls), true) == s.Reason) {
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

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// settleStop derives why a response ended and marks the calls that must not
// run after it (quirks B18, B19, C34).
func settleStop(word string, terminal bool, calls []*dragoman.ToolCall) dragoman.StopReason {
	whole := 0
	for _, c := range calls {
		if c.Problem == nil || c.Problem.Code != dragoman.ProblemTruncated {
			whole++
		}
	}
	reason := dragoman.DeriveStop(stopOf(word), whole, terminal)
	if reason.Runs() {
		return reason
	}
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
	return reason
}
