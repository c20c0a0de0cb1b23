package openairesponses

import (
	"cmp"
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// stopOf maps the status of a response and, for an incomplete one, the reason. The mapping is
// total: an unknown value is StopUnknown, after which no call runs (quirk B20). finished is false
// while the response is still in progress.
func stopOf(status, reason string) (stop dragoman.StopReason, finished bool) {
	switch status {
	case "", "completed":
		return dragoman.StopEnd, true
	case "incomplete":
		switch reason {
		case "max_output_tokens", "max_messages", "max_tokens", "length":
			return dragoman.StopLength, true
		case "content_filter":
			return dragoman.StopContentFilter, true
		case "steered":
			return dragoman.StopCanceled, true
		default:
			return dragoman.StopUnknown, true
		}
	case "failed":
		return dragoman.StopError, true
	case "cancelled":
		return dragoman.StopCanceled, true
	case "queued", "in_progress":
		return dragoman.StopNone, false
	default:
		return dragoman.StopUnknown, true
	}
}

// statusOf returns the status and reason for a stop; the reason is empty for a status without
// one. exact is false if they are less specific than the stop.
func statusOf(s dragoman.Stop, own bool) (status, reason string, exact bool) {
	if own && s.Native != "" {
		status, reason = s.Native, ""
		if s.Details != nil {
			status, reason = "incomplete", s.Native
		}
		// The native values, unless the stop was changed.
		word, finished := stopOf(status, reason)
		runs := word == dragoman.StopEnd && (s.Reason == dragoman.StopToolCalls || s.Reason == dragoman.StopCompaction)
		if word == s.Reason || runs || !finished && s.Reason == dragoman.StopError {
			return status, reason, true
		}
	}
	switch s.Reason {
	case dragoman.StopNone, dragoman.StopEnd, dragoman.StopToolCalls, dragoman.StopCompaction:
		return "completed", "", true
	case dragoman.StopSequence, dragoman.StopRefusal, dragoman.StopPause:
		return "completed", "", false
	case dragoman.StopLength:
		return "incomplete", "max_output_tokens", true
	case dragoman.StopContentFilter:
		return "incomplete", "content_filter", true
	case dragoman.StopError, dragoman.StopMalformedCall:
		return "failed", "", s.Reason == dragoman.StopError
	case dragoman.StopCanceled:
		return "cancelled", "", true
	default:
		// No call runs after an unknown reason, so it is not "completed".
		return "incomplete", "content_filter", false
	}
}

// ending returns the status and reason of a response with these calls. Clients run the calls of a
// completed response. So a response is never written as completed if its stop forbids calls, or
// if it has a blocked call that a client would run.
func (e *outputEncoder) ending(resp *dragoman.Response, calls []*dragoman.ToolCall) (status, reason string, exact bool) {
	status, reason, exact = statusOf(resp.Stop, ownStop(resp))
	if status != "completed" {
		return status, reason, exact
	}
	if resp.Error != nil {
		return "failed", "", exact
	}
	runs := resp.Stop.Reason == dragoman.StopNone || resp.Stop.Reason.Runs()
	for _, c := range calls {
		_, blocked := wirekit.BlockedReason(c)
		if blocked = blocked && !wirekit.IsTruncated(c); blocked || !c.Hosted && !runs { // a truncated call has its own status (quirk C26)
			return "incomplete", "content_filter", false
		}
	}
	return status, reason, exact
}

// ownStop reports whether the native values of a stop belong to this dialect: the response came
// from it, or was built by hand with values of this dialect.
func ownStop(resp *dragoman.Response) bool {
	if resp.Origin != nil {
		return resp.Origin.Dialect == name
	}
	word, finished := stopOf(resp.Stop.Native, "")
	return isNative(resp.Stop.Details) || word != dragoman.StopUnknown || !finished
}

// ownDetails returns the native details of a stop if they still match the reason.
func ownDetails(resp *dragoman.Response, reason string) []byte {
	d := resp.Stop.Details
	if !ownStop(resp) || !isNative(d) || !json.Valid(d.JSON) {
		return nil
	}
	if native := reasonIn(d.JSON); native != reason && (native != "" || reason != "incomplete") {
		return nil
	}
	return d.JSON
}

// reasonIn returns the reason in incomplete_details; empty if there is none.
func reasonIn(details []byte) (reason string) {
	r := jsonwire.NewReader(details)
	if r.Kind() != '{' {
		return ""
	}
	for key := range r.Object() {
		if string(key) == "reason" && r.Kind() == '"' {
			reason = r.String()
		} else {
			r.Skip()
		}
	}
	return reason
}

// settleStop derives the stop and marks the calls that must not run after it (quirks B18, B19,
// C26, C34). failed is set if the response has an error, after which no call runs whatever its
// status is.
func settleStop(reg *interop.Registry, status, reason string, failed bool, details []byte, calls []*dragoman.ToolCall) dragoman.Stop {
	word, finished := stopOf(status, reason)
	if failed && (word == dragoman.StopNone || word.Runs()) {
		word = dragoman.StopError
	}
	stop := dragoman.Stop{Reason: wirekit.SettleStop(reg, word, finished, calls), Native: status}
	if status == "incomplete" {
		stop.Native = cmp.Or(reason, status)
		if details != nil {
			stop.Details = &dragoman.Native{Format: dragoman.Format(name), JSON: details}
		}
	}
	return stop
}

func truncated(why string) *dragoman.CallProblem {
	return &dragoman.CallProblem{Code: codes.ProblemTruncated, Message: why, Offset: -1}
}

func stopped(why string) *dragoman.CallProblem {
	return &dragoman.CallProblem{Code: codes.ProblemStopped, Message: why, Offset: -1}
}
