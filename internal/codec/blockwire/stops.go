package blockwire

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stopreason"
)

// StopOf reads a stop reason. The mapping is total: an unknown word is
// StopUnknown, after which nothing runs (quirk B20). Words of other APIs are those
// that servers and models of these dialects let slip.
func (f *Format) StopOf(word string) dragoman.StopReason {
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
	}
	if reason, ok := f.StopWords[word]; ok {
		return reason
	}
	return dragoman.StopUnknown
}

// WordOf writes a stop: in the word that the dialect gave it, else in the nearest
// one that it has. exact is false if the word means something else. calls says that
// the response holds some: after a stop that lets nothing run, clients must read a
// word that keeps them from running calls.
func (f *Format) WordOf(s dragoman.Stop, own, calls bool) (word string, exact bool) {
	if own && s.Native != "" && f.meant(s, calls) {
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
	default:
		return f.StopWord(s.Reason, calls)
	}
}

// meant reports whether the native word of a stop still means what the stop does,
// by itself or with the calls beside it.
func (f *Format) meant(s dragoman.Stop, calls bool) bool {
	word, n := f.StopOf(s.Native), 0
	if calls {
		n = 1
	}
	return word == s.Reason || stopreason.Derive(word, n, true) == s.Reason
}
