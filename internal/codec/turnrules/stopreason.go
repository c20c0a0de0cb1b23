package turnrules

import dragoman "github.com/dragoman-go/dragoman"

// StopReason returns the stop reason of a response. word is the reason that the provider
// sent, as the dialect reads it. calls is the number of complete client calls.
// sawTerminal reports whether the stream or body had its terminal marker.
//
//   - Without the terminal marker, an absent reason, or one after which calls may run,
//     becomes StopError.
//   - With a call, an absent or benign reason becomes StopToolCalls.
//   - Without a call, StopToolCalls becomes StopEnd.
//   - Any other reason is returned unchanged.
func StopReason(word dragoman.StopReason, calls int, sawTerminal bool) dragoman.StopReason {
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
