package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
	"github.com/dragoman-go/dragoman/interop"
)

// SettleStop returns the stop reason of a response, given the reason that the provider
// sent (word) and its calls. terminal reports whether the response is complete. It
// marks the calls that must not run: calls that the request did not allow (quirks B37,
// E2), and after some reasons all calls (quirks B18, B19, C34).
func SettleStop(reg *interop.Registry, word dragoman.StopReason, terminal bool, calls []*dragoman.ToolCall) dragoman.StopReason {
	whole, forbidden := 0, 0
	for _, c := range calls {
		if !IsTruncated(c) {
			whole++
		}
		if reg.Forbid(c) {
			forbidden++
		}
	}
	if forbidden > 0 && forbidden == len(calls) && (word == dragoman.StopNone || word.Runs()) {
		word = dragoman.StopMalformedCall // calls that the request did not ask for
	}
	reason := turnrules.StopReason(word, whole, terminal)
	ForbidCalls(reason, calls)
	return reason
}

// ForbidCalls marks the calls of a response that must not run after its stop reason. A
// call keeps the problem that it has, with one exception: if the output limit cut the
// response, the last call is the one that was cut, and that is why its arguments are
// not valid JSON.
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

// endedWith returns the problem message for a call that is blocked only by the stop
// reason of its response.
func endedWith(reason dragoman.StopReason) string {
	return "the response ended with " + string(reason) + "; nothing runs after that"
}

// IsTruncated reports whether the end of the output or of the stream truncated a call.
func IsTruncated(c *dragoman.ToolCall) bool {
	return c.Problem != nil && c.Problem.Code == codes.ProblemTruncated
}

// BlockedReason returns the stop reason for a response with a blocked call. A call whose
// arguments are not valid JSON is blocked, too: a client that receives the response as
// complete would run the call, or fail on it (quirk B9).
func BlockedReason(c *dragoman.ToolCall) (reason dragoman.StopReason, blocked bool) {
	c = Checked(c)
	switch {
	case c.Problem == nil || c.Hosted:
		return "", false
	case IsTruncated(c):
		return dragoman.StopLength, true
	case IsNameless(c): // there is no tool to run
		return "", false
	default:
		return dragoman.StopError, true
	}
}

// BlockedWith returns BlockedReason for a response that is written with a registry. It does not
// check calls again that the registry has found valid.
func BlockedWith(reg *interop.Registry) func(*dragoman.ToolCall) (dragoman.StopReason, bool) {
	return func(c *dragoman.ToolCall) (reason dragoman.StopReason, blocked bool) {
		if c.Problem == nil && reg.Valid(c) {
			return "", false
		}
		return BlockedReason(c)
	}
}

// IsNameless reports whether a call is blocked because it has no name, so that there is
// nothing to run. The problem code alone is not enough: a client runs a call that has a
// name, whatever its problem.
func IsNameless(c *dragoman.ToolCall) bool {
	return c.Problem != nil && c.Name == "" && c.Problem.Code == codes.ProblemNoName
}

// Checked returns a call with the problem of its arguments. A call that the application
// made itself has not been checked yet.
func Checked(c *dragoman.ToolCall) *dragoman.ToolCall {
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

// BlockedCalls collects what blocks the calls of a response. The zero value blocks nothing.
type BlockedCalls struct {
	reason dragoman.StopReason
	// sure means that a call is blocked for another reason than an unknown stop reason.
	sure bool
}

// Block blocks all calls of the response. reason is the stop reason to end it with.
func (b *BlockedCalls) Block(reason dragoman.StopReason) {
	b.sure = true
	b.add(reason)
}

func (b *BlockedCalls) add(reason dragoman.StopReason) {
	if b.reason != dragoman.StopError {
		b.reason = reason
	}
}

// Call adds a call of the response. blocked is BlockedReason, or a function of the dialect that
// knows more.
func (b *BlockedCalls) Call(c *dragoman.ToolCall, blocked func(*dragoman.ToolCall) (dragoman.StopReason, bool)) {
	if reason, ok := blocked(c); ok {
		b.sure = b.sure || c.Problem == nil || c.Problem.Code != codes.ProblemStopped || c.Problem.Message != endedWith(dragoman.StopUnknown)
		b.add(reason)
	}
}

// EffectiveStop returns the stop to write. A stop after which calls run is replaced if the
// response has a blocked call. So is an unknown stop, because some readers run calls
// after it, but only if a call is blocked for a reason of its own; a call that only the
// unknown stop blocks is left to readers that know the reason.
func (b BlockedCalls) EffectiveStop(stop dragoman.Stop) dragoman.Stop {
	may := stop.Reason == dragoman.StopNone || stop.Reason.Runs() || stop.Reason == dragoman.StopUnknown && b.sure
	if b.reason == "" || !may {
		return stop
	}
	return dragoman.Stop{Reason: b.reason}
}

// BlockedByChoice holds the BlockedCalls of each choice of a stream. The zero value is ready to
// use.
type BlockedByChoice map[int]*BlockedCalls

// Of returns the BlockedCalls of a choice.
func (m *BlockedByChoice) Of(choice int) *BlockedCalls {
	b := (*m)[choice]
	if b == nil {
		if *m == nil {
			*m = BlockedByChoice{}
		}
		b = &BlockedCalls{}
		(*m)[choice] = b
	}
	return b
}

// EffectiveStop returns the stop to write for a response with these calls.
func EffectiveStop(stop dragoman.Stop, calls []*dragoman.ToolCall, blocked func(*dragoman.ToolCall) (dragoman.StopReason, bool)) dragoman.Stop {
	if stop.Reason != dragoman.StopNone && stop.Reason != dragoman.StopUnknown && !stop.Reason.Runs() {
		return stop
	}
	var b BlockedCalls
	for _, c := range calls {
		b.Call(c, blocked)
	}
	return b.EffectiveStop(stop)
}

// MustRebuild reports whether the native form of a response must not be passed through:
// its stop is no longer valid because a call was marked after decoding, or a call is
// ambiguous and the client might read it differently.
func MustRebuild(resp *dragoman.Response, blocked func(*dragoman.ToolCall) (dragoman.StopReason, bool)) bool {
	for _, c := range resp.ToolCalls() {
		if c.Problem != nil && c.Problem.Code == codes.ProblemDuplicateKey {
			return true
		}
	}
	if EffectiveStop(resp.Stop, resp.ToolCalls(), blocked).Reason != resp.Stop.Reason {
		return true
	}
	for i := range resp.Alternatives {
		a := &resp.Alternatives[i]
		for j := range a.Output {
			if EffectiveStop(a.Stop, a.Output[j].ToolCalls(), blocked).Reason != a.Stop.Reason {
				return true
			}
		}
	}
	return false
}

// Ended describes why a response failed, for a wire format without a stop reason for
// it. The description includes the provider's message. rest holds the unknown fields
// without that message.
func Ended(reason dragoman.StopReason, unknown *dragoman.Extra) (words string, rest *dragoman.Extra) {
	words = "the response ended with " + string(reason)
	message, left := extra.FinishMessage(unknown)
	if message != "" {
		words += ": " + message
	}
	return words, left
}

// ReportBlocked reports a stop that is replaced because of a blocked call; the other
// calls of the response do not run either. word is the stop as written, at is the
// pointer of the response.
func ReportBlocked(rep *dragoman.Report, stop, standing dragoman.Stop, word, at string) {
	if stop.Reason != standing.Reason {
		rep.Addf(dragoman.Lowered, dragoman.Warn, at+"/stop", "stop reason %s written as %s: the response has a call that must not run", stop.Reason, word)
	}
}

// ReportDetails reports the loss of the record that explains a stop, for a wire format
// without a field for it. at is the pointer of the response.
func ReportDetails(rep *dragoman.Report, s dragoman.Stop, at string) {
	if s.Details != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at+"/stop/details", "stop details from another API")
	}
}
