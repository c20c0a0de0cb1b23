package interop

import (
	"slices"
	"strconv"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// UnfoldParallel replaces a call of the dispatcher that some servers leak, a function named
// "parallel" that contains other calls, with the calls it contains (quirk B23). It does so only
// if the request declared no tool of that name, the call may run, and every inner call is valid
// and of a declared tool. Any other call is unchanged.
//
// Call it before the first call of a response runs. The inner calls get ids derived from the
// wrapper's id. The message then differs from the original, so the next request shows the model
// these calls.
func (r *Registry) UnfoldParallel(resp *dragoman.Response, rep *dragoman.Report) {
	taken := map[string]bool{}
	for _, c := range resp.ToolCalls() {
		taken[c.ID] = true
	}
	for i := range resp.Output {
		m := &resp.Output[i]
		for j := 0; j < len(m.Parts); j++ {
			wrapper, ok := m.Parts[j].(*dragoman.ToolCall)
			if !ok || !r.isWrapper(wrapper) {
				continue
			}
			at := extra.Elem("/output", i).Elem("parts", j)
			calls := r.unfold(wrapper, at, rep)
			if len(calls) == 0 || slices.ContainsFunc(calls, func(p dragoman.Part) bool { return taken[p.(*dragoman.ToolCall).ID] }) {
				continue
			}
			rep.Addf(dragoman.Lowered, dragoman.Info, at.String(), "the wrapper %q, which is not a tool, was replaced by the %d calls that it contains", wrapper.Name, len(calls))
			m.Parts = slices.Concat(m.Parts[:j], calls, m.Parts[j+1:])
			j += len(calls) - 1
		}
	}
}

func (r *Registry) isWrapper(c *dragoman.ToolCall) bool {
	if c.Name != "parallel" && c.Name != "multi_tool_use.parallel" {
		return false
	}
	_, _, declared := r.PublicName(c.Namespace, c.Name)
	return declared == nil && c.Namespace == "" && c.Problem == nil && !c.Hosted && c.Payload != codes.PayloadText
}

// unfold returns the calls in a wrapper, or nothing if it contains anything but valid calls of
// declared tools.
func (r *Registry) unfold(wrapper *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) (calls []dragoman.Part) {
	rd := jsonwire.NewReader([]byte(wrapper.Arguments))
	valid := true
	var said dragoman.Report
	for key := range rd.Object() {
		if string(key) != "tool_uses" {
			return nil
		}
		for i := range rd.Array() {
			c := &dragoman.ToolCall{ID: wrapper.ID + "_" + strconv.Itoa(i), Synthetic: true, Caller: wrapper.Caller}
			valid = valid && readRecipient(rd, c)
			_, _, declared := r.PublicName("", c.Name)
			r.ResolveCall(c, at, &said)
			valid = valid && declared != nil && c.Problem == nil
			calls = append(calls, c)
		}
	}
	if !valid || rd.End() != nil || len(calls) == 0 {
		return nil
	}
	rep.Merge("", said)
	calls[0].(*dragoman.ToolCall).Signature = wrapper.Signature
	return calls
}

// readRecipient reads one call of the wrapper; ok is false if it has fields that a call cannot
// hold.
func readRecipient(rd *jsonwire.Reader, c *dragoman.ToolCall) bool {
	known := true
	for key := range rd.Object() {
		switch string(key) {
		case "recipient_name":
			c.Name = rd.String()
		case "parameters":
			c.Arguments = string(rd.Raw())
		default:
			rd.Skip()
			known = false
		}
	}
	return known
}
