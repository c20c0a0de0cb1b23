package wirekit

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/interop"
)

// SettleStop derives why a response ended from the reason that its word stands
// for and the calls it holds, and marks the calls that must not run: those that
// the request did not allow (quirks B37, E2), and all of them after some reasons
// (quirks B18, B19, C34). terminal says that the response came to its end.
func SettleStop(reg *interop.Registry, word dragoman.StopReason, terminal bool, calls []*dragoman.ToolCall) dragoman.StopReason {
	whole, unasked := 0, 0
	for _, c := range calls {
		if !Cut(c) {
			whole++
		}
		if reg.Forbid(c) {
			unasked++
		}
	}
	if unasked > 0 && unasked == len(calls) && (word == dragoman.StopNone || word.Runs()) {
		word = dragoman.StopMalformedCall // calls where none was asked for
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

// Barred is the reason that has to end an answer with a call that must not run:
// a client could run what is written of it, as its arguments look sound, or as
// it reads them without noticing that others read them differently.
func Barred(c *dragoman.ToolCall) (reason dragoman.StopReason, barred bool) {
	switch {
	case c.Problem == nil || c.Hosted:
		return "", false
	case c.Problem.Code == dragoman.ProblemStopped:
		return dragoman.StopError, true
	case Cut(c):
		return dragoman.StopLength, true
	case c.Problem.Code == dragoman.ProblemNoName: // there is no tool to run
		return "", false
	case c.Payload == dragoman.PayloadText, dragoman.CheckArguments(c.Arguments) == nil:
		return dragoman.StopError, true // only we know what is wrong with it
	}
	if _, why := interop.AnswerText(c); why != nil {
		return dragoman.StopError, true // readers take them, each in its own way
	}
	return "", false // whoever reads its arguments notices
}

// BarredObject is Barred for a wire on which arguments are an object: those that
// are none are told in one there, which a tool that takes anything would run.
func BarredObject(c *dragoman.ToolCall) (reason dragoman.StopReason, barred bool) {
	reason, barred = Barred(c)
	if barred || c.Problem == nil || c.Hosted || c.Problem.Code == dragoman.ProblemNoName {
		return reason, barred
	}
	return dragoman.StopError, true
}

// Look remembers what a look at the texts of a call showed. They only grow, so
// that nothing is new while they are as long as before, however many events ask.
type Look struct {
	size  int
	amiss bool
}

// Unnoticed reports whether one of the texts is arguments with a problem that a
// client does not notice: a stop that makes it run such a call is not passed on
// as it came.
func (l *Look) Unnoticed(texts ...[]byte) bool {
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	if size != l.size {
		l.size, l.amiss = size, slices.ContainsFunc(texts, unnoticed)
	}
	return l.amiss
}

func unnoticed(text []byte) bool {
	c := dragoman.ToolCall{Arguments: string(text)}
	c.Problem = dragoman.CheckArguments(c.Arguments)
	_, barred := Barred(&c)
	return barred
}

// Standing is the stop to write for an answer with these calls: one after which
// calls run does not stand beside a call that must not. barred is Barred, or
// what a dialect knows better.
func Standing(stop dragoman.Stop, calls []*dragoman.ToolCall, barred func(*dragoman.ToolCall) (dragoman.StopReason, bool)) dragoman.Stop {
	if stop.Reason != dragoman.StopNone && !stop.Reason.Runs() {
		return stop
	}
	for _, c := range calls {
		if reason, ok := barred(c); ok && stop.Reason != dragoman.StopError {
			stop = dragoman.Stop{Reason: reason}
		}
	}
	return stop
}

// Overtaken reports whether the native form of a response must not be passed on:
// a stop no longer stands, because a call was marked since it was decoded, or a
// call says two things, of which the client might run the other.
func Overtaken(resp *dragoman.Response, barred func(*dragoman.ToolCall) (dragoman.StopReason, bool)) bool {
	for _, c := range resp.ToolCalls() {
		if c.Problem != nil && c.Problem.Code == dragoman.ProblemDuplicateKey {
			return true
		}
	}
	if Standing(resp.Stop, resp.ToolCalls(), barred).Reason != resp.Stop.Reason {
		return true
	}
	for i := range resp.Alternatives {
		a := &resp.Alternatives[i]
		for j := range a.Output {
			if Standing(a.Stop, a.Output[j].ToolCalls(), barred).Reason != a.Stop.Reason {
				return true
			}
		}
	}
	return false
}

// ReportDetails reports the record that explains a stop, for a wire that has no
// place for it. at is the pointer of the answer that the stop ended.
func ReportDetails(rep *dragoman.Report, s dragoman.Stop, at string) {
	if s.Details != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at+"/stop/details", "a native record of another API")
	}
}
