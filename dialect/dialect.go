// Package dialect defines the interface of the wire dialects and the options they share. Each
// package below it implements one dialect. These packages are pure: they convert bytes to
// canonical values and back, without I/O, clock or randomness.
//
//	var codec dialect.Codec = anthropic.Codec{}
//	req, report, err := codec.DecodeRequest(body, dialect.DecodeOptions{})
//	out, err := openaichat.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
//
// Every conversion returns a report of its losses. Decoding a request or a response keeps the
// native bytes next to the canonical value. Encoding an unchanged value in the same dialect
// returns the same bytes. Streams are re-encoded from their events; in the same dialect, unknown
// events and unknown fields keep their values.
package dialect

import (
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// Codec converts one wire dialect in both directions. A client encodes a request and decodes its
// response; a server decodes a request and encodes its response. A Codec has no state and is safe
// for concurrent use.
type Codec interface {
	Dialect() dragoman.Dialect
	// Limits returns the rules of the dialect as data.
	Limits() targets.Limits

	EncodeRequest(*dragoman.Request, EncodeOptions) (Encoded, error)
	DecodeRequest(body []byte, o DecodeOptions) (*dragoman.Request, dragoman.Report, error)
	EncodeResponse(*dragoman.Response, EncodeOptions) (Encoded, error)
	DecodeResponse(body []byte, o DecodeOptions) (*dragoman.Response, dragoman.Report, error)
	NewStreamDecoder(DecodeOptions) StreamDecoder
	NewStreamEncoder(EncodeOptions) StreamEncoder

	// EncodeError returns the status and the body that a server of this dialect sends for an
	// error. The report lists what the dialect cannot express.
	EncodeError(*dragoman.APIError) (status int, body []byte, rep dragoman.Report)
	// DecodeError reads the error of a non-2xx response. It never fails: a body that it does not
	// understand becomes the message.
	DecodeError(status int, header http.Header, body []byte) *dragoman.APIError
}

// Encoded is an encoded body with the losses of encoding it.
type Encoded struct {
	Body   []byte
	Report dragoman.Report
	// Registry is the registry that the body was encoded with. Decode the response with it to
	// reverse the aliases of names and ids. If its OutputWrapped is set, unwrap the text of the
	// response with schema.Unwrap.
	Registry *interop.Registry
}

// EncodeOptions configure encoding. The zero value encodes for the dialect's own vendor.
type EncodeOptions struct {
	// Target describes the model and the server that receive the body. It limits the content of
	// the body. It does not name the model of a request, which is dragoman.Request.Model. Its
	// Dialect may be empty.
	Target targets.Target
	// Registry is the registry of the request. If nil, one is composed from the tools and
	// contributions of the request.
	Registry *interop.Registry
	// Codecs are the tool codecs of a registry that is composed here, such as those of package
	// dialect/all; nil means the dialect's own. Other codecs are needed only for:
	//
	//   - a tool whose definition exists only in the format of another dialect,
	//   - a schema subset of another dialect in Target.Caps.ToolSchema.
	//
	// They also make the losses of hosted tools more precise.
	Codecs []toolwire.Codec
	// Schemas caches lowered tool schemas between requests, for a registry that is composed here.
	// If nil, schemas are lowered each time.
	Schemas *interop.SchemaCache
	// Rebuild ignores sidecars: everything is encoded from the canonical values.
	Rebuild bool
	// Seed determines the ids that an encoder generates, such as the id of a response or an item.
	// The same seed gives the same ids. With an empty seed, ids are unique only within one
	// object.
	Seed string
	// Model overrides the model named in a response or stream; empty keeps it. It does not affect
	// requests, which use dragoman.Request.Model.
	Model string
	// ResponseID replaces the id of a response or stream if that id comes from another API and
	// the dialect has its own kind of id (OpenAI Responses). If empty, an id is generated.
	ResponseID string
	// StreamUsage writes usage into a stream, for dialects whose clients must request it.
	StreamUsage bool
	// LegacyFunctions writes a call for OpenAI Chat clients that declared their tools as
	// "functions": as the single function_call of the message, without an id. Further calls of
	// the message are dropped and reported. Other dialects ignore it.
	LegacyFunctions bool
}

// DecodeOptions configure decoding. The zero value keeps everything.
type DecodeOptions struct {
	// Registry is the registry that the request was encoded with; nil means that no name was
	// aliased and no tool was lowered. It restores the names and ids of calls, results and
	// choices. It does not affect tool definitions, because the owner of the registry has the
	// tools.
	Registry *interop.Registry
	// Origin identifies the model that produced the bytes. Its Dialect may be empty.
	Origin dragoman.Origin
	// Seed determines the ids of calls that arrive without one. The same seed gives the same ids;
	// with an empty seed, ids are unique only within one object. If you decode several responses
	// of one conversation, pass a seed that differs between them and is the same on replay, such
	// as the turn number or the id of the response. Otherwise the calls of two turns share their
	// ids.
	Seed string
	// NoNative omits sidecars, chunks and unknown fields of stream events, for callers that never
	// encode in the same dialect. The decoder reports the omitted fields.
	NoNative bool
	// DeltasOnly omits the text, refusal or thinking from the end of a part if the deltas
	// contained it. Callers that forward a stream and do not collect it save the memory of long
	// texts. Calls always end complete. It has no effect on OpenAI Responses streams, which
	// repeat everything.
	DeltasOnly bool
	// LiftErrors reads "ERROR: " at the start of a result as its error flag, in dialects that
	// have no such flag. Each case is reported.
	LiftErrors bool
	// MaxBytes bounds a body, one event of a stream, and the memory kept for all events of a
	// stream. OpenAI Responses streams repeat everything, so they may keep three times as much. 0
	// means 64 MiB.
	MaxBytes int
}

// Limit returns MaxBytes or its default.
func (o DecodeOptions) Limit() int {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return framing.DefaultMaxBody
}

// StreamDecoder converts the bytes of a stream to events. Bytes may be fed in chunks of any size;
// the events do not depend on chunk boundaries. A StreamDecoder is not safe for concurrent use.
type StreamDecoder interface {
	// Feed decodes the next bytes and calls emit for each event, in order. It returns the error
	// of emit, or a DecodeError for bytes that are not valid in such a stream. After an error,
	// only Close may be called. Feed does not retain p.
	Feed(p []byte, emit func(dragoman.Event) error) error
	// Close marks the end of the stream and ends open parts. If the terminal event is missing, it
	// emits a StreamError and returns an error that wraps [dragoman.ErrIncompleteStream].
	Close(emit func(dragoman.Event) error) error
	// Report returns the losses of decoding so far.
	Report() dragoman.Report
}

// StreamEncoder converts events to the bytes of a stream. It writes them in the order that the
// strictest clients of the dialect require, regardless of the order of the events. A
// StreamEncoder is not safe for concurrent use.
type StreamEncoder interface {
	// Encode appends the bytes for the next event to dst. An event may produce no bytes.
	Encode(dst []byte, ev dragoman.Event) ([]byte, error)
	// Close appends the end of the stream. A stream without ResponseEnd or StreamError ends with
	// an error event.
	Close(dst []byte) ([]byte, error)
	// Report returns the losses of encoding so far.
	Report() dragoman.Report
}
