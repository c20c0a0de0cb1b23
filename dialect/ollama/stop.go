package ollama

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// stopOf maps a done_reason. The server sends four values: stop (also after calls), length, and
// load and unload for requests that only did that. The field is an open string, so a response
// from another API keeps its reason in it. The mapping is total: any other value is StopUnknown,
// after which no call runs (quirk B20).
func stopOf(word string) dragoman.StopReason {
	switch word {
	case "":
		return dragoman.StopNone
	case "stop", "load", "unload":
		return dragoman.StopEnd
	case "tool_calls":
		return dragoman.StopToolCalls
	case "length":
		return dragoman.StopLength
	case "content_filter":
		return dragoman.StopContentFilter
	case "error":
		return dragoman.StopError
	default:
		return dragoman.StopUnknown
	}
}

// forbids reports whether no call may run after a done_reason.
func forbids(word string) bool { return word != "" && !stopOf(word).Runs() }

// combineReasons combines two values of done_reason: one that forbids calls is never replaced by one
// that allows them.
func combineReasons(have, next string) string {
	if next == "" || forbids(have) && !forbids(next) {
		return have
	}
	return next
}

// settleStop derives the stop reason and marks the calls that must not run.
func settleStop(reg *interop.Registry, word string, terminal bool, calls []*dragoman.ToolCall) dragoman.Stop {
	return dragoman.Stop{Reason: wirekit.SettleStop(reg, stopOf(word), terminal, calls), Native: word}
}

// blocked reports whether a call must not run, although a client would run it: its arguments are
// valid, and Ollama clients ignore the stop reason. Calls whose invalid arguments are wrapped in
// an error object are not blocked.
func blocked(c *dragoman.ToolCall) bool {
	switch {
	case c.Problem == nil || c.Hosted || wirekit.IsNameless(c):
		return false
	case c.Problem.Code == codes.ProblemStopped:
		return true
	default:
		_, why := toolwire.ResponseObject(c)
		return why == nil
	}
}

// unsafeToReplay reports whether a call must not run, although a client that gets its original
// bytes would run it.
func unsafeToReplay(c *dragoman.ToolCall) bool {
	return blocked(c) || c.Problem != nil && !c.Hosted && !wirekit.IsNameless(c) && dragoman.CheckArguments(c.Arguments) == nil
}

// blocksCalls reports whether no call may run after a stop.
func blocksCalls(s dragoman.Stop) bool { return s.Reason != dragoman.StopNone && !s.Reason.Runs() }

// doneReasonOf returns the done_reason for a stop: the native value if it still matches, otherwise the
// nearest one.
func doneReasonOf(s dragoman.Stop, own bool, calls int) (word string, exact bool) {
	if own && s.Native != "" && turnrules.StopReason(stopOf(s.Native), calls, true) == s.Reason {
		return s.Native, true
	}
	switch s.Reason {
	case dragoman.StopEnd, dragoman.StopNone, dragoman.StopToolCalls:
		return "stop", true
	case dragoman.StopLength:
		return "length", true
	case dragoman.StopContentFilter:
		return "content_filter", true
	case dragoman.StopRefusal:
		return "content_filter", false
	case dragoman.StopError:
		return "error", true
	case dragoman.StopCanceled, dragoman.StopMalformedCall:
		return "error", false
	default: // a stop sequence, a pause, an unknown reason
		return "stop", false
	}
}
