package blockwire

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Response is a response that is being decoded, from a body or from the events of a
// stream. Dialects embed it.
type Response struct {
	Decoder *Decoder
	Keep    wirekit.Keeper
	Resp    dragoman.Response

	// StopReason is the stop reason on the wire, Sequence the stop sequence that ended the
	// response, and Details the record that explains the stop.
	StopReason, Sequence string
	Details              *dragoman.Native
	// Failed means that an error came instead of a response, or together with one.
	Failed bool
}

// NewResponse returns an empty response.
func NewResponse(d *Decoder) Response {
	return Response{Decoder: d, Resp: dragoman.Response{Origin: d.Origin}}
}

// Decode decodes the body of a response. read reads the whole document and returns what
// is wrong with it. On an error, Decode also returns what was read before it.
func (a *Response) Decode(body []byte, read func(r *jsonwire.Reader) error) (*dragoman.Response, dragoman.Report, error) {
	d := a.Decoder
	r, sure, err := wirekit.OpenResponse(d.Dialect, body, d.Options, d.Literal, d.Rep)
	if err != nil {
		return &a.Resp, *d.Rep, err
	}
	defer r.Return()
	d.Ambiguous = !sure
	rewritten := d.Reg.Rewritten()
	if err := read(r); err != nil {
		return &a.Resp, *d.Rep, wirekit.DecodeError(d.Dialect, "response", err)
	}
	if a.Failed {
		a.Resp.Error = d.DecodeError(0, nil, body)
		if len(a.Resp.ToolCalls()) > 0 {
			// A client that overlooks the error would run the calls next to it.
			d.Ambiguous, a.Resp.Error.Native = true, nil
		}
	}
	if !d.Options.NoNative && !d.Ambiguous && d.Reg.Rewritten() == rewritten {
		a.Resp.Native = &dragoman.Sidecar{Dialect: d.Dialect, Raw: body, Mirror: a.Resp.Fingerprint()}
	}
	return &a.Resp, *d.Rep, nil
}

// SetStop sets the stop reason on the wire. A reason after which no calls run is final: a
// later one must not unblock the calls.
func (a *Response) SetStop(word string) {
	if word == "" || word == a.StopReason {
		return
	}
	if a.StopReason != "" {
		kept, lost := word, a.StopReason
		if !a.Decoder.StopOf(a.StopReason).Runs() {
			kept, lost = a.StopReason, word
		}
		d := a.Decoder
		d.Ambiguous = d.Ambiguous || !d.StopOf(kept).Runs()
		d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, d.StopAt, d.StopField+" %.40q in addition to %.40q", lost, kept)
		word = kept
	}
	a.StopReason = word
}

// Repeated blocks the calls of a message with a duplicate field.
func (a *Response) Repeated(parts []dragoman.Part, field string) {
	a.Decoder.Ambiguous = true
	for _, p := range parts {
		if c, ok := p.(*dragoman.ToolCall); ok {
			c.Problem = wirekit.RepeatedField(field)
		}
	}
}

// Stop returns why the response ended, and blocks calls that must not run after that.
func (a *Response) Stop(terminal bool, calls []*dragoman.ToolCall) dragoman.Stop {
	word := a.StopReason
	if a.Failed {
		word = "error" // an error blocks calls, whatever the wire says
	}
	d := a.Decoder
	// A client that gets the original bytes would run calls that the request did not
	// allow.
	d.Ambiguous = slices.ContainsFunc(calls, d.Reg.Forbid) || d.Ambiguous
	return dragoman.Stop{
		Reason: wirekit.SettleStop(d.Reg, d.StopOf(word), terminal, calls),
		Native: a.StopReason, Sequence: a.Sequence, Details: a.Details,
	}
}

// Message adds the message of the response. raw returns the message in the form of a
// request; it is nil if the message cannot be sent back in that form.
func (a *Response) Message(m dragoman.Message, raw func() []byte) {
	d := a.Decoder
	if len(m.Parts) == 0 {
		return
	}
	if raw != nil && !d.Options.NoNative && !d.Ambiguous {
		m.Native = &dragoman.Sidecar{Dialect: d.Dialect, Raw: raw(), Mirror: m.Fingerprint()}
	}
	a.Resp.Output = []dragoman.Message{m}
}
