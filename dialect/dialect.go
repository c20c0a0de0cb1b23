// Package dialect is the contract of the wire languages: what each package
// below it can do, and the options they share. The packages below are pure:
// bytes in, canonical values out, and back; no I/O, no clock, no randomness.
//
//	var codec dialect.Codec = anthropic.Codec{}
//	req, report, err := codec.DecodeRequest(body, dialect.DecodeOptions{})
//	out, err := openaichat.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
//
// Every conversion returns a report of what it could not keep. Decoding a request
// or a response keeps the native form beside the canonical one, so that encoding in
// the same dialect gives the same bytes as long as nothing was changed. Streams are
// re-encoded from their events; in the same dialect, unknown events and unknown
// fields keep their values.
package dialect

import (
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/framing/bodies"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// Codec is one wire language, in both directions: Encode a request and decode
// its response as a client; decode a request and encode its response as a
// server. A Codec has no state and is safe for concurrent use.
type Codec interface {
	Dialect() dragoman.Dialect
	// Limits returns the dialect's rules as data.
	Limits() targets.Limits

	EncodeRequest(*dragoman.Request, EncodeOptions) (Encoded, error)
	DecodeRequest(body []byte, o DecodeOptions) (*dragoman.Request, dragoman.Report, error)
	EncodeResponse(*dragoman.Response, EncodeOptions) (Encoded, error)
	DecodeResponse(body []byte, o DecodeOptions) (*dragoman.Response, dragoman.Report, error)
	NewStreamDecoder(DecodeOptions) StreamDecoder
	NewStreamEncoder(EncodeOptions) StreamEncoder

	// EncodeError writes an error as the dialect's servers do: status and body. The
	// report tells what of the error they cannot say.
	EncodeError(*dragoman.APIError) (status int, body []byte, rep dragoman.Report)
	// DecodeError reads the error of a non-2xx answer. It never fails: a body
	// it does not understand becomes the message.
	DecodeError(status int, header http.Header, body []byte) *dragoman.APIError
}

// Encoded is an encoded body and what encoding it could not keep.
type Encoded struct {
	Body   []byte
	Report dragoman.Report
	// Registry is the one the body was encoded with. Decode the answer with it,
	// so that aliases of names and ids are reversed; where it says AnswerWrapped,
	// the text of the answer is for schema.Unwrap.
	Registry *interop.Registry
}

// EncodeOptions say for whom and how to encode. The zero value encodes for the
// dialect's own vendor.
type EncodeOptions struct {
	// Target is the model and server behind the wire. Its Dialect may be left
	// empty. It says what may be sent, and does not name the model of a request,
	// which is the one of dragoman.Request.
	Target targets.Target
	// Registry is the request's; nil composes one from the request's tools and
	// contributions.
	Registry *interop.Registry
	// Codecs are the tool codecs of a registry that is composed here, such as
	// those of package dialect/all; nil means the dialect's own. Others are needed
	// only for a tool whose definition is given in another dialect's format alone,
	// and for a schema subset of another dialect in Target.Caps.ToolSchema. They
	// also make the losses of hosted tools more precise.
	Codecs []toolwire.Codec
	// Schemas remembers lowered tool schemas from one request to the next, for
	// a registry that is composed here; nil lowers them each time.
	Schemas *interop.SchemaCache
	// Rebuild ignores sidecars: everything is written from the canonical model.
	Rebuild bool
	// Seed makes the ids an encoder must invent (a response's id, item ids).
	// The same seed gives the same ids; an empty seed gives ids that are unique
	// within one object only.
	Seed string
	// Model overrides the model named in a response or stream; empty keeps it. The
	// model of a request is the one of dragoman.Request, whatever stands here.
	Model string
	// ResponseID is the id of a response or stream whose own is of another API's kind, in a
	// dialect that has a kind of its own (Responses); empty makes one.
	ResponseID string
	// StreamUsage writes usage into a stream where the dialect's clients must
	// ask for it.
	StreamUsage bool
	// LegacyFunctions writes the call of an answer as a client of OpenAI Chat reads it
	// that declared its tools as "functions": as the one function_call of its message,
	// without an id. Further calls of the message are left out, which is reported. The
	// function of that name in openaichat says whether a request asks for it; other
	// dialects pay no heed.
	LegacyFunctions bool
}

// DecodeOptions say how to decode. The zero value keeps everything.
type DecodeOptions struct {
	// Registry is the one the request was encoded with; nil means that no name
	// was aliased and no tool lowered. It restores the names and ids of calls,
	// results and choices; tool definitions are read as they stand on the wire,
	// since who has the registry has the tools.
	Registry *interop.Registry
	// Origin is what minted the bytes; its Dialect may be left empty.
	Origin dragoman.Origin
	// Seed makes the ids of calls that came without one. The same seed gives
	// the same ids; an empty one gives ids unique within this object only.
	// Where answers come one after the other, pass something that differs
	// between them and is the same on a replay, such as the number of the turn
	// or the id of the response: else the calls of two turns share their ids.
	Seed string
	// NoNative leaves out sidecars, chunks and unknown fields of stream events, for
	// callers that never encode the same dialect. The decoder reports the fields.
	NoNative bool
	// DeltasOnly leaves the text, refusal or thinking out of the end of a part
	// whose deltas told it, for who passes a stream on and does not collect it: a
	// long text then takes no memory. Calls always end whole. The stream of a
	// dialect that says everything twice (OpenAI Responses) is kept as it is.
	DeltasOnly bool
	// LiftErrors reads "ERROR: " at the start of a result as its error flag,
	// where the dialect has no flag. Each lift is reported.
	LiftErrors bool
	// MaxBytes bounds a body, one event of a stream, and what is kept of all
	// events of a stream (of OpenAI Responses three times as much, which tells
	// everything three times); 0 means 64 MiB.
	MaxBytes int
}

// Limit returns MaxBytes or its default.
func (o DecodeOptions) Limit() int {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return bodies.DefaultMax
}

// StreamDecoder turns the bytes of a stream into events. Bytes may be fed in
// pieces of any size; the events do not depend on where they were cut. It is
// not safe for concurrent use.
type StreamDecoder interface {
	// Feed takes the next bytes. It calls emit for each event in order and
	// returns emit's error, or a DecodeError for bytes that cannot be part of
	// such a stream. After an error, only Close may be called.
	Feed(p []byte, emit func(dragoman.Event) error) error
	// Close says that the stream ended. It ends open parts and emits a
	// StreamError when the terminal event was missing; it then also returns an
	// error that wraps [dragoman.ErrIncompleteStream].
	Close(emit func(dragoman.Event) error) error
	// Report returns what decoding could not keep so far.
	Report() dragoman.Report
}

// StreamEncoder turns events into the bytes of a stream. It keeps to the order
// its dialect's strictest clients demand, whatever order the events come in.
// It is not safe for concurrent use.
type StreamEncoder interface {
	// Encode appends the bytes for the next event to dst; there may be none.
	Encode(dst []byte, ev dragoman.Event) ([]byte, error)
	// Close appends what the dialect demands at the end. A stream that was
	// given neither ResponseEnd nor StreamError ends with an error event.
	Close(dst []byte) ([]byte, error)
	// Report returns what encoding could not keep so far.
	Report() dragoman.Report
}
