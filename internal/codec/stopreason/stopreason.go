// Package stopreason settles why a response ended.
package stopreason

import dragoman "github.com/dragoman-go/dragoman"

// Derive settles why a response ended, from the dialect's reading of the
// provider's word and the content. calls is the number of complete client
// calls, sawTerminal whether the stream (or body) had its terminal marker.
//
// With a call, an absent or benign word means tool calls; without one,
// "tool_calls" means a plain stop. Any other word stands as it is, but none
// after which calls may run stands without the terminal marker.
func Derive(word dragoman.StopReason, calls int, sawTerminal bool) dragoman.StopReason {
	if !sawTerminal && (word == dragoman.StopNone || word.Runs()) {
		return dragoman.StopError
	}
	switch word {
	case dragoman.StopNone, dragoman.StopEnd, dragoman.StopToolCalls:
		switch {
		case calls > 0:
			return dragoman.StopToolCalls
		default:
			return dragoman.StopEnd
		}
	default:
		return word
	}
}
