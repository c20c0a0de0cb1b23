package ollama

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/stopreason"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// stopOf reads a done_reason. The server has four words: stop, also for calls;
// length; and load and unload, for a request that only did that. The member is
// an open string, so that an answer of another API keeps its reason in it. The
// mapping is total: a word in no table is StopUnknown, after which nothing runs
// (quirk B20).
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

// forbids reports whether a word is one after which nothing runs.
func forbids(word string) bool { return word != "" && !stopOf(word).Runs() }

// laterWord settles a reason that comes twice: one after which nothing runs
// stays, whatever a later one says.
func laterWord(have, next string) string {
	if next == "" || forbids(have) && !forbids(next) {
		return have
	}
	return next
}

// settleStop derives why an answer ended and marks the calls that must not run.
func settleStop(reg *interop.Registry, word string, terminal bool, calls []*dragoman.ToolCall) dragoman.Stop {
	return dragoman.Stop{Reason: wirekit.SettleStop(reg, stopOf(word), terminal, calls), Native: word}
}

// barred reports whether a call must not run though a client that reads it
// would: its arguments look sound, and clients of this wire do not look at the
// reason for which an answer ended. Arguments that are told in an object are no
// such ones.
func barred(c *dragoman.ToolCall) bool {
	switch {
	case c.Problem == nil || c.Hosted || wirekit.Nameless(c):
		return false
	case c.Problem.Code == codes.ProblemStopped:
		return true
	default:
		_, why := toolwire.AnswerObject(c)
		return why == nil
	}
}

// marked reports whether a call must not run of which the bytes it came in would
// make a client run it.
func marked(c *dragoman.ToolCall) bool {
	return barred(c) || c.Problem != nil && !c.Hosted && !wirekit.Nameless(c) && dragoman.CheckArguments(c.Arguments) == nil
}

// halts reports whether nothing of an answer runs after a stop.
func halts(s dragoman.Stop) bool { return s.Reason != dragoman.StopNone && !s.Reason.Runs() }

// wordOf writes a stop: in the word this dialect gave it where that still says
// so, else in the nearest one there is.
func wordOf(s dragoman.Stop, own bool, calls int) (word string, exact bool) {
	if own && s.Native != "" && stopreason.Derive(stopOf(s.Native), calls, true) == s.Reason {
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
	case dragoman.StopCancelled, dragoman.StopMalformedCall:
		return "error", false
	default: // a stop sequence, a pause, a word we do not know
		return "stop", false
	}
}
