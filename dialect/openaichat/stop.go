package openaichat

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// stopOf maps a finish reason. The mapping is total: an unknown value is StopUnknown, after which
// no call runs (quirk B20).
func stopOf(word string) dragoman.StopReason {
	switch word {
	case "":
		return dragoman.StopNone
	case "stop", "eos", "end", "end_turn", "complete", "completed":
		return dragoman.StopEnd
	case "stop_sequence": // from Anthropic, where it truncates a call like a length limit
		return dragoman.StopSequence
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
		return dragoman.StopCanceled
	case "malformed_function_call", "malformed_tool_use", "malformed_tool_call":
		return dragoman.StopMalformedCall
	default:
		return dragoman.StopUnknown
	}
}

// hiddenMalformed reports whether the native reason of a router means that the call was
// malformed, whatever the finish reason is (quirk B21).
func hiddenMalformed(native string) bool {
	switch strings.ToUpper(native) {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		return true
	default:
		return false
	}
}

// forbids reports whether no call may run after a finish reason.
func forbids(word string) bool { return word != "" && !stopOf(word).Runs() }

// mayRun reports whether some clients run calls after a finish reason. A client that does not
// know the value may do anything.
func mayRun(word string) bool {
	reason := stopOf(word)
	return !forbids(word) || reason == dragoman.StopUnknown || reason == dragoman.StopSequence // not an OpenAI value
}

// combineReasons combines two finish reasons: one that forbids calls is never replaced by one that
// allows them.
func combineReasons(have, next string) string {
	if forbids(have) && !forbids(next) {
		return have
	}
	return next
}

// combineRouted does the same for the native reason of a router.
func combineRouted(have, next string) string {
	if hiddenMalformed(have) {
		return have
	}
	return next
}

// callCount counts the calls of a response.
type callCount struct {
	all   int
	whole int // complete calls
}

func (n *callCount) add(c *dragoman.ToolCall) {
	n.all++
	if !wirekit.IsTruncated(c) {
		n.whole++
	}
}

func countCalls(out []dragoman.Message) (n callCount) {
	for i := range out {
		for _, c := range out[i].ToolCalls() {
			n.add(c)
		}
	}
	return n
}

// matchesStop reports whether a native value, or its absence, still means the stop. It does not
// if the caller changed the reason, and then the change must be written.
func matchesStop(s dragoman.Stop, native string, calls callCount) bool {
	return turnrules.StopReason(stopOf(native), calls.whole, true) == s.Reason
}

// finishReasonOf returns the finish reason for a stop: the native value if it still matches, otherwise
// the nearest one. If there are calls, a stop that forbids them never becomes a value after which
// clients run them.
func finishReasonOf(s dragoman.Stop, own bool, calls callCount) (word string, exact bool) {
	if own && s.Native != "" && matchesStop(s, s.Native, calls) {
		return s.Native, true
	}
	if calls.all > 0 && !s.Reason.Runs() {
		switch s.Reason {
		case dragoman.StopLength:
			return "length", true
		default:
			return "content_filter", s.Reason == dragoman.StopContentFilter
		}
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
	case dragoman.StopError, dragoman.StopCanceled, dragoman.StopMalformedCall:
		return "error", false
	default:
		return "stop", false
	}
}

// settleStop derives the stop of one choice and marks the calls that must not run after it
// (quirks B18, B19, C34).
func settleStop(reg *interop.Registry, word, routed string, terminal bool, calls []*dragoman.ToolCall) dragoman.Stop {
	reason := stopOf(word)
	if hiddenMalformed(routed) {
		reason = dragoman.StopMalformedCall
	}
	return dragoman.Stop{Reason: wirekit.SettleStop(reg, reason, terminal, calls), Native: word}
}
