package wirekit

import (
	"errors"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ErrNotObject says that a document is none of an API, whose bodies and events
// are objects.
var ErrNotObject = errors.New("want a JSON object")

// DecodeRequest is the way of every request from the wire. A body within the
// bounds is read by read, each member once: of one that stands there twice the
// last counts (requirement R7), and one that is another of the known ones but for
// its case is left out, because servers that ignore case would read it instead.
// What was read keeps the body as its native form where read is sure that
// everybody reads the same.
func DecodeRequest(
	d dragoman.Dialect, c Conversation, body []byte, o dialect.DecodeOptions, literal jsonwire.Literal,
	req *dragoman.Request, rep *dragoman.Report, read func(*jsonwire.Reader) (sure bool, err error),
) error {
	if err := CheckDecode(d, o); err != nil {
		return err
	}
	if err := CheckSize(d, "request", body, o); err != nil {
		return err
	}
	settled, at := jsonwire.SettleValue(body, literal)
	reportRepeats(rep, at.Repeats, "of which the last counts")
	for _, twin := range at.Twins {
		rep.Add(dragoman.Dropped, dragoman.Warn, twin, "a member that some readers would take for another; the native form is not kept")
	}
	r, err := openBody(settled)
	sure := false
	if err == nil {
		sure, err = read(r)
	}
	if err != nil {
		return unsettledPlace(DecodeError(d, "request", err), !at.None())
	}
	if err := checkConversation(rep, req, d, c.Field, at.Twins); err != nil {
		return DecodeError(d, "request", err)
	}
	if !o.NoNative && sure && at.None() {
		req.Native = &dragoman.Sidecar{Dialect: d, Raw: body, Mirror: req.Fingerprint()}
	}
	return nil
}

// checkConversation looks at a request without messages. Where they stand in
// other letters, which some servers read and others do not, nobody can say what
// is meant. Where another API has them, the body was most likely given to the
// wrong dialect, which is reported.
func checkConversation(rep *dragoman.Report, req *dragoman.Request, d dragoman.Dialect, field string, twins []string) error {
	if len(req.Messages) > 0 {
		return nil
	}
	own := "/" + field
	for _, twin := range twins {
		if strings.EqualFold(twin, own) {
			return &jsonwire.Error{Pointer: twin, Offset: -1, Err: fmt.Errorf("the conversation stands in %q: write it as %q", twin[1:], own[1:])}
		}
	}
	for _, f := range req.Extra.For(d) {
		switch f.Path {
		case own:
		case "/messages", "/input", "/contents":
			rep.Addf(dragoman.Dropped, dragoman.Serious, f.Path, "there are no messages in %s; the body looks like one of another API, and its conversation is not read", own)
		}
	}
	return nil
}

// unsettledPlace takes the offset out of an error that counts the bytes of a
// settled body, which nobody has seen. Its pointer is right.
func unsettledPlace(err error, settled bool) error {
	var e *dragoman.DecodeError
	if settled && errors.As(err, &e) {
		e.Offset = -1
	}
	return err
}

// OpenResponse begins to read a response. It is sure when no object of it has a
// member twice: which of the two counts is not the same to all readers, so the
// bytes must not go on (requirement R7). The reader may be returned.
func OpenResponse(
	d dragoman.Dialect, body []byte, o dialect.DecodeOptions, literal jsonwire.Literal, rep *dragoman.Report,
) (r *jsonwire.Reader, sure bool, err error) {
	if err := CheckDecode(d, o); err != nil {
		return nil, false, err
	}
	if err := CheckSize(d, "response", body, o); err != nil {
		return nil, false, err
	}
	whole, at := jsonwire.SettleValue(body, literal)
	reportRepeats(rep, at.Repeats, "of which readers disagree which counts")
	if !at.None() {
		whole = jsonwire.Value{Raw: body}
	}
	if r, err = openBody(whole); err != nil {
		return nil, false, DecodeError(d, "response", err)
	}
	return r, at.None(), nil
}

func reportRepeats(rep *dragoman.Report, places []string, so string) {
	for _, at := range places {
		rep.Add(dragoman.Dropped, dragoman.Warn, at, "the object has this member twice, "+so+"; the native form is not kept")
	}
}

// openBody begins to read a body, which must be an object, with a reader that may be
// returned. Where it is no JSON
// at all there is no error yet: the reader will say where it breaks.
func openBody(body jsonwire.Value) (*jsonwire.Reader, error) {
	r := body.Reader()
	if r.Kind() != '{' && r.Err() == nil {
		r.Return()
		return nil, ErrNotObject
	}
	return r, nil
}
