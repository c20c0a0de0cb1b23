package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stopreason"
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
	reason := stopreason.Derive(word, whole, terminal)
	ForbidCalls(reason, calls)
	return reason
}

// ForbidCalls marks the calls of a response that must not run after the reason
// it ended for; a call that has a problem keeps it. Of a response that the
// output limit cut, the last call is the one that was cut, and that is why its arguments
// are no JSON.
func ForbidCalls(reason dragoman.StopReason, calls []*dragoman.ToolCall) {
	if reason.Runs() {
		return
	}
	for i, c := range calls {
		cut := reason == dragoman.StopLength && i == len(calls)-1
		switch {
		case c.Problem != nil && !(cut && c.Problem.Code == codes.ProblemInvalidJSON):
		case cut:
			c.Problem = &dragoman.CallProblem{
				Code: codes.ProblemTruncated, Offset: -1,
				Message: "the output limit cut the response, so the arguments may be incomplete; make the call again, shorter",
			}
		default:
			c.Problem = &dragoman.CallProblem{Code: codes.ProblemStopped, Offset: -1, Message: endedWith(reason)}
		}
	}
}

// endedWith is why a call must not run that has nothing wrong with it but the
// reason its response ended for.
func endedWith(reason dragoman.StopReason) string {
	return "the response ended with " + string(reason) + "; nothing runs after that"
}

// Cut reports whether the end of the output or of the stream cut a call.
func Cut(c *dragoman.ToolCall) bool {
	return c.Problem != nil && c.Problem.Code == codes.ProblemTruncated
}

// Barred returns the stop reason for a response with a blocked call. A call with arguments
// that are not valid JSON is blocked, too: a client that gets the response as complete
// would run the call, or fail on it (quirk B9).
func Barred(c *dragoman.ToolCall) (reason dragoman.StopReason, barred bool) {
	c = Judged(c)
	switch {
	case c.Problem == nil || c.Hosted:
		return "", false
	case Cut(c):
		return dragoman.StopLength, true
	case Nameless(c): // there is no tool to run
		return "", false
	default:
		return dragoman.StopError, true
	}
}

// BarredBy is Barred for an answer that is written with a registry, which remembers what
// it found sound.
func BarredBy(reg *interop.Registry) func(*dragoman.ToolCall) (dragoman.StopReason, bool) {
	return func(c *dragoman.ToolCall) (reason dragoman.StopReason, barred bool) {
		if c.Problem == nil && reg.Sound(c) {
			return "", false
		}
		return Barred(c)
	}
}

// Nameless reports whether a call must not run because it has no name, so that
// there is nothing to run. The code alone proves nothing: a client runs a call
// that has a name, whatever is said of it.
func Nameless(c *dragoman.ToolCall) bool {
	return c.Problem != nil && c.Name == "" && c.Problem.Code == codes.ProblemNoName
}

// Judged is a call with the problem of its arguments: one that was made by hand
// has none before somebody looks.
func Judged(c *dragoman.ToolCall) *dragoman.ToolCall {
	if c.Problem != nil || c.Hosted || c.Payload == codes.PayloadText {
		return c
	}
	p := dragoman.CheckArguments(c.Arguments)
	if p == nil {
		return c
	}
	marked := *c
	marked.Problem = p
	return &marked
}

// Barring is what keeps the calls of an answer from running. The zero value is
// nothing.
type Barring struct {
	reason dragoman.StopReason
	// sure: not only because nobody knows the word the answer ended with.
	sure bool
}

// Bar says that nothing of the answer may run, and the reason to end it with.
func (b *Barring) Bar(reason dragoman.StopReason) {
	b.sure = true
	b.add(reason)
}

func (b *Barring) add(reason dragoman.StopReason) {
	if b.reason != dragoman.StopError {
		b.reason = reason
	}
}

// Call takes a call of the answer. barred is Barred, or what a dialect knows
// better.
func (b *Barring) Call(c *dragoman.ToolCall, barred func(*dragoman.ToolCall) (dragoman.StopReason, bool)) {
	if reason, ok := barred(c); ok {
		b.sure = b.sure || c.Problem == nil || c.Problem.Code != codes.ProblemStopped || c.Problem.Message != endedWith(dragoman.StopUnknown)
		b.add(reason)
	}
}

// Standing is the stop to write: one after which calls run does not stand beside
// a call that must not. Nor does one that nobody knows, after which some readers
// run calls, beside a call that is wrong by itself; the calls that only this stop
// forbids are left to those who know the word.
func (b Barring) Standing(stop dragoman.Stop) dragoman.Stop {
	may := stop.Reason == dragoman.StopNone || stop.Reason.Runs() || stop.Reason == dragoman.StopUnknown && b.sure
	if b.reason == "" || !may {
		return stop
	}
	return dragoman.Stop{Reason: b.reason}
}

// Barrings are those of the answers of a stream, by choice. The zero value is
// ready.
type Barrings map[int]*Barring

// Of is that of one answer.
func (m *Barrings) Of(choice int) *Barring {
	b := (*m)[choice]
	if b == nil {
		if *m == nil {
			*m = Barrings{}
		}
		b = &Barring{}
		(*m)[choice] = b
	}
	return b
}

// Standing is the stop to write for an answer with these calls.
func Standing(stop dragoman.Stop, calls []*dragoman.ToolCall, barred func(*dragoman.ToolCall) (dragoman.StopReason, bool)) dragoman.Stop {
	if stop.Reason != dragoman.StopNone && stop.Reason != dragoman.StopUnknown && !stop.Reason.Runs() {
		return stop
	}
	var b Barring
	for _, c := range calls {
		b.Call(c, barred)
	}
	return b.Standing(stop)
}

// Overtaken reports whether the native form of a response must not be passed on:
// a stop no longer stands, because a call was marked since it was decoded, or a
// call says two things, of which the client might run the other.
func Overtaken(resp *dragoman.Response, barred func(*dragoman.ToolCall) (dragoman.StopReason, bool)) bool {
	for _, c := range resp.ToolCalls() {
		if c.Problem != nil && c.Problem.Code == codes.ProblemDuplicateKey {
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

// Ended says in words why an answer failed that its wire has no word for, with
// what the provider said of it. told are the members of the answer without that.
func Ended(reason dragoman.StopReason, members *dragoman.Extra) (words string, told *dragoman.Extra) {
	words = "the response ended with " + string(reason)
	message, rest := extra.FinishMessage(members)
	if message != "" {
		words += ": " + message
	}
	return words, rest
}

// ReportBarred reports a stop that does not stand, in the word it is written as,
// because of a call that must not run: calls beside it do not run either. at is
// the pointer of the answer.
func ReportBarred(rep *dragoman.Report, told, standing dragoman.Stop, word, at string) {
	if told.Reason != standing.Reason {
		rep.Addf(dragoman.Lowered, dragoman.Warn, at+"/stop", "stop %s written as %s: a call of the answer must not run", told.Reason, word)
	}
}

// ReportDetails reports the record that explains a stop, for a wire that has no
// place for it. at is the pointer of the answer that the stop ended.
func ReportDetails(rep *dragoman.Report, s dragoman.Stop, at string) {
	if s.Details != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at+"/stop/details", "a native record of another API")
	}
}
