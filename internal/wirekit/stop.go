package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
)

// SettleStop derives why a response ended from the reason that its word stands
// for and the calls it holds, and marks the calls that must not run after it
// (quirks B18, B19, C34). terminal says that the response came to its end.
func SettleStop(word dragoman.StopReason, terminal bool, calls []*dragoman.ToolCall) dragoman.StopReason {
	whole := 0
	for _, c := range calls {
		if !Cut(c) {
			whole++
		}
	}
	reason := dragoman.DeriveStop(word, whole, terminal)
	ForbidCalls(reason, calls)
	return reason
}

// ForbidCalls marks the calls of a response that must not run after the reason
// it ended for; a call that has a problem keeps it. Of a response that the
// output limit cut, the last call is the one that was cut.
func ForbidCalls(reason dragoman.StopReason, calls []*dragoman.ToolCall) {
	if reason.Runs() {
		return
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
}

// Cut reports whether the end of the output or of the stream cut a call.
func Cut(c *dragoman.ToolCall) bool {
	return c.Problem != nil && c.Problem.Code == dragoman.ProblemTruncated
}
