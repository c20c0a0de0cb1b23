package cohere

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// decodeStop converts a finish reason. An unknown one is StopUnknown, after which
// no call runs (quirk B20). Older servers send ERROR_TOXIC, ERROR_LIMIT and
// USER_CANCEL.
func decodeStop(reason string) dragoman.StopReason {
	switch reason {
	case "":
		return dragoman.StopNone
	case "COMPLETE":
		return dragoman.StopEnd
	case "STOP_SEQUENCE":
		return dragoman.StopSequence
	case "TOOL_CALL":
		return dragoman.StopToolCalls
	case "MAX_TOKENS":
		return dragoman.StopLength
	case "ERROR_TOXIC":
		return dragoman.StopContentFilter
	case "ERROR", "TIMEOUT", "ERROR_LIMIT":
		return dragoman.StopError
	case "USER_CANCEL":
		return dragoman.StopCanceled
	default:
		return dragoman.StopUnknown
	}
}

// mergeFinishReasons merges two finish reasons. A reason that blocks calls is never
// replaced by one that does not.
func mergeFinishReasons(have, next string) string {
	if next == "" || have != "" && !decodeStop(have).Runs() && decodeStop(next).Runs() {
		return have
	}
	return next
}

// settleStop returns why a response ended, and marks the calls that must not
// run.
func settleStop(reg *interop.Registry, reason string, terminal bool, calls []*dragoman.ToolCall) dragoman.Stop {
	return dragoman.Stop{Reason: wirekit.SettleStop(reg, decodeStop(reason), terminal, calls), Native: reason}
}

// callCount counts the calls of a response, and those that are complete.
type callCount struct{ all, whole int }

func countCalls(calls []*dragoman.ToolCall) (n callCount) {
	for _, c := range calls {
		if n.all++; !wirekit.IsTruncated(c) {
			n.whole++
		}
	}
	return n
}

// encodeStop returns the finish reason to write for a stop: the native one if it
// still means the same, otherwise the nearest. If there are calls, a stop that
// blocks them never becomes a reason after which clients run them.
func encodeStop(s dragoman.Stop, own bool, calls callCount) (reason string, exact bool) {
	if own && s.Native != "" && turnrules.StopReason(decodeStop(s.Native), calls.whole, true) == s.Reason {
		return s.Native, true
	}
	switch s.Reason {
	case dragoman.StopEnd, dragoman.StopNone:
		return "COMPLETE", true
	case dragoman.StopToolCalls:
		return "TOOL_CALL", true
	case dragoman.StopLength:
		return "MAX_TOKENS", true
	case dragoman.StopError:
		return "ERROR", true
	case dragoman.StopSequence:
		if calls.all == 0 {
			return "STOP_SEQUENCE", true
		}
	case dragoman.StopRefusal, dragoman.StopPause, dragoman.StopCompaction, dragoman.StopUnknown:
		if calls.all == 0 {
			return "COMPLETE", false
		}
	}
	return "ERROR", false
}
