package wirekit

import (
	"errors"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ErrNotObject reports a body or event that is not a JSON object.
var ErrNotObject = errors.New("want a JSON object")

// DecodeRequest decodes a request body for every dialect:
//
//   - It checks the options and the size of the body.
//   - It settles duplicate fields: the last one counts (requirement R7). A field that
//     differs from a known field only in case is dropped, because servers that ignore
//     case would read it instead.
//   - read gets each remaining field once. If read is sure that all readers understand
//     the body alike, the request keeps the body as its native form.
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
	reportRepeats(rep, at.Repeats, "the last one is used")
	for _, variant := range at.CaseVariants {
		rep.Add(dragoman.Dropped, dragoman.Warn, variant, "the name differs from a known field only in case; the native form is not kept")
	}
	r, err := openBody(settled)
	sure := false
	if err == nil {
		sure, err = read(r)
	}
	if err != nil {
		return unsettledPlace(DecodeError(d, "request", err), !at.None())
	}
	if err := checkConversation(rep, req, d, c.Field, at.CaseVariants); err != nil {
		return DecodeError(d, "request", err)
	}
	if !o.NoNative && sure && at.None() {
		req.Native = &dragoman.Sidecar{Dialect: d, Raw: body, Mirror: req.Fingerprint()}
	}
	return nil
}

// checkConversation checks a request without messages. If the messages are in a field
// that differs only in case, servers disagree whether to read it, so it returns an
// error. If the messages are in the field of another API, it reports that the body was
// probably decoded with the wrong dialect.
func checkConversation(rep *dragoman.Report, req *dragoman.Request, d dragoman.Dialect, field string, variants []string) error {
	if len(req.Messages) > 0 {
		return nil
	}
	own := "/" + field
	for _, variant := range variants {
		if strings.EqualFold(variant, own) {
			return &jsonwire.Error{Pointer: variant, Offset: -1, Err: fmt.Errorf("the conversation is in field %q: name the field %q", variant[1:], own[1:])}
		}
	}
	for _, f := range req.Extra.For(d) {
		switch f.Path {
		case own:
		case "/messages", "/input", "/contents":
			rep.Addf(dragoman.Dropped, dragoman.Serious, f.Path, "%s has no messages; this field belongs to another API and is not read: check the dialect of the request", own)
		}
	}
	return nil
}

// unsettledPlace removes the offset from an error in a settled body: it counts bytes
// that the caller never saw. The pointer of the error stays valid.
func unsettledPlace(err error, settled bool) error {
	var e *dragoman.DecodeError
	if settled && errors.As(err, &e) {
		e.Offset = -1
	}
	return err
}

// OpenResponse returns a reader for a response. sure is false if an object in the
// response has a duplicate field: readers disagree which one counts, so the bytes must
// not be passed through (requirement R7). The caller may call Return on the reader.
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
	reportRepeats(rep, at.Repeats, "parsers disagree which one counts")
	if !at.None() {
		whole = jsonwire.Value{Raw: body}
	}
	if r, err = openBody(whole); err != nil {
		return nil, false, DecodeError(d, "response", err)
	}
	return r, at.None(), nil
}

func reportRepeats(rep *dragoman.Report, places []string, effect string) {
	for _, at := range places {
		rep.Add(dragoman.Dropped, dragoman.Warn, at, "duplicate field: "+effect+"; the native form is not kept")
	}
}

// openBody returns a reader for a body that must be an object; the caller may call
// Return on it. For a body that is not valid JSON it returns no error: the reader
// reports where the JSON breaks.
func openBody(body jsonwire.Value) (*jsonwire.Reader, error) {
	r := body.Reader()
	if r.Kind() != '{' && r.Err() == nil {
		r.Return()
		return nil, ErrNotObject
	}
	return r, nil
}
