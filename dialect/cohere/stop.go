package cohere

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stopreason"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// stopOf reads a finish reason. An unknown one is StopUnknown, after which no call runs
// (quirk B20). ERROR_TOXIC, ERROR_LIMIT and USER_CANCEL are words of older servers.
func stopOf(word string) dragoman.StopReason {
	switch word {
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
		return dragoman.StopCancelled
	default:
		return dragoman.StopUnknown
	}
}

// laterWord returns the finish reason to keep of two: one after which no call runs stays.
func laterWord(have, next string) string {
	if next == "" || have != "" && !stopOf(have).Runs() && stopOf(next).Runs() {
		return have
	}
	return next
}

// settleStop derives why a response ended, and marks the calls that must not run.
func settleStop(reg *interop.Registry, word string, terminal bool, calls []*dragoman.ToolCall) dragoman.Stop {
	return dragoman.Stop{Reason: wirekit.SettleStop(reg, stopOf(word), terminal, calls), Native: word}
}

// callCount counts the calls of a response, and those that were not cut.
type callCount struct{ all, whole int }

func countCalls(calls []*dragoman.ToolCall) (n callCount) {
	for _, c := range calls {
		if n.all++; !wirekit.Cut(c) {
			n.whole++
		}
	}
	return n
}

// wordOf writes a stop: its own word if it still means the same, otherwise the nearest
// one. Beside calls, a stop after which none runs never becomes a word after which clients
// run them.
func wordOf(s dragoman.Stop, own bool, calls callCount) (word string, exact bool) {
	if own && s.Native != "" && stopreason.Derive(stopOf(s.Native), calls.whole, true) == s.Reason {
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
