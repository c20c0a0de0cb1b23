package openaichat

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stopreason"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// stopOf reads a finish reason. The mapping is total: a word in no table is
// StopUnknown, after which nothing runs (quirk B20).
func stopOf(word string) dragoman.StopReason {
	switch word {
	case "":
		return dragoman.StopNone
	case "stop", "eos", "end", "end_turn", "complete", "completed":
		return dragoman.StopEnd
	case "stop_sequence": // of Anthropic's, where it cuts a call as a length does
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

// forbids reports whether a finish reason is one after which nothing runs.
func forbids(word string) bool { return word != "" && !stopOf(word).Runs() }

// mayRun reports whether some reader runs calls after a finish reason: whoever
// does not know the word decides as it likes.
func mayRun(word string) bool {
	reason := stopOf(word)
	return !forbids(word) || reason == dragoman.StopUnknown || reason == dragoman.StopSequence // which is no word of OpenAI's
}

// laterWord settles a finish reason that comes twice: one after which nothing
// runs stays, whatever a later one says.
func laterWord(have, next string) string {
	if forbids(have) && !forbids(next) {
		return have
	}
	return next
}

// laterRouted does the same for a router's native reason.
func laterRouted(have, next string) string {
	if hiddenMalformed(have) {
		return have
	}
	return next
}

// callCount counts the calls of an answer.
type callCount struct {
	all   int
	whole int // those that were not cut
}

func (n *callCount) add(c *dragoman.ToolCall) {
	n.all++
	if !wirekit.Cut(c) {
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

// meant reports whether a native word, or none, says of its own what the stop
// says: who changed the reason wants the change to be seen.
func meant(s dragoman.Stop, native string, calls callCount) bool {
	return stopreason.Derive(stopOf(native), calls.whole, true) == s.Reason
}

// wordOf writes a stop: in the word this dialect gave it where that still says
// so, else in the nearest one there is. Beside calls, a stop after which
// nothing runs never becomes a word after which clients run them.
func wordOf(s dragoman.Stop, own bool, calls callCount) (word string, exact bool) {
	if own && s.Native != "" && meant(s, s.Native, calls) {
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
	case dragoman.StopError, dragoman.StopCancelled, dragoman.StopMalformedCall:
		return "error", false
	default:
		return "stop", false
	}
}

// settleStop derives the stop of one choice and marks the calls that must not
// run after it (quirks B18, B19, C34).
func settleStop(reg *interop.Registry, word, routed string, terminal bool, calls []*dragoman.ToolCall) dragoman.Stop {
	reason := stopOf(word)
	if hiddenMalformed(routed) {
		reason = dragoman.StopMalformedCall
	}
	return dragoman.Stop{Reason: wirekit.SettleStop(reg, reason, terminal, calls), Native: word}
}
