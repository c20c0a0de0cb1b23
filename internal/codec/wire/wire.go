// Package wire describes a dialect on the network: where its messages are in a body,
// how its streams are framed and end, and at which paths and with which headers it is
// served. Each package below dialect has one [Wire]. The provider, the gateway, the
// simulator and the command read it, so that none of them compares the names of
// dialects.
//
// It does not contain the rules of the canonical conversion: see [targets.Limits].
package wire

import (
	"encoding/json"
	"net/url"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Wire describes one dialect. It is shared and must not be changed.
//
// The zero value of every field means that the dialect does not have it.
type Wire struct {
	// Names are the short names of the dialect on the command line.
	Names []string

	Body      Body
	Endpoint  Endpoint
	Providers []Provider // the first is the vendor's own
	Headers   Headers
	Stream    Stream
	Serving   Serving
	State     State
	Signs     Signs
	Simulator Simulator

	// ToolTypes are the only tool types of the dialect; empty means that servers add types.
	ToolTypes string
	// ToolSearch is the hosted tool that finds deferred tools.
	ToolSearch *dragoman.ToolSpec
	// CallGuard returns a guard for one response. Nil means that arguments of calls are
	// objects, which cannot be invalid JSON.
	CallGuard func(dialect.DecodeOptions) CallGuard
	// LegacyFunctions reports whether a request declares its tools as "functions", so that
	// its client reads one call.
	LegacyFunctions func(*dragoman.Request) bool
	// Summaries means that clients show reasoning only as a summary, if they request
	// one.
	Summaries bool
	// Relayed means that servers relay the errors of other APIs.
	Relayed bool
	// StopWords are the native stop reasons to write. A response without one comes from
	// an older server.
	StopWords map[dragoman.StopReason]string
}

// Body describes the structure of bodies.
type Body struct {
	// Messages is the field of a request with the conversation.
	Messages string
	// Tools is the JSON pointer of the tools of a request.
	Tools string
	// ToolSettings are the paths of the settings that the API refuses without tools.
	ToolSettings []string
	// WrapTool returns a tool as an element of Tools. Nil returns it unchanged.
	WrapTool func(json.RawMessage) json.RawMessage
	// Response is the path of the messages in a response: a field, a JSON pointer, or
	// empty for the whole body.
	Response string
	// Chunk are the paths of the message in a chunk of a stream. Empty means that a
	// stream has whole items or blocks.
	Chunk []string
	// ChunkReads are the fields of the message in a chunk that are not fields of the same
	// form in a whole message. They are read by the dialect alone.
	ChunkReads []string
	// Roles are the message roles that error messages list. AnyRole means that servers
	// accept every role.
	Roles   []string
	AnyRole bool
	// StreamsByDefault means that a request without "stream" asks for a stream.
	StreamsByDefault bool
	// DefaultTag is the tag, with its colon, of a model name without one. Clients may
	// add it.
	DefaultTag string
	// Empty reports whether a request without messages only loads or unloads its model,
	// and why.
	Empty func(body []byte) (reason string, ok bool)
	// Prepared returns the response to such a request.
	Prepared func(model, created, reason string) []byte
}

// Endpoint describes where the vendor serves the dialect.
type Endpoint struct {
	// BaseURL is empty if it names a region.
	BaseURL string
	// Path and StreamPath may contain {model}. An empty StreamPath is Path.
	Path, StreamPath string
	// ModelPath returns the model for {model} and the path, for names with a prefix.
	ModelPath func(model, path string) (string, string)
	// SameModel returns other names that the server accepts for the same model. Nil
	// means that each model has one name.
	SameModel func(model string) []string
	// Count is where tokens are counted: a suffix of the path or, if it begins with a
	// colon, the replacement for the method after the last colon.
	Count string
	// CountField is the field of a count.
	CountField string
	// CountBody is the body of a count, with one verb for the number.
	CountBody string
	// Counted returns the request in the body of a request to count. Nil means the body.
	Counted func(body []byte) []byte
	// OwnServer means that a client of the dialect uses the vendor only if it has no
	// base URL, because many servers are compatible with the dialect.
	OwnServer bool
	// Vendor is the vendor's name in the table of models.
	Vendor string
}

// Headers are the header conventions.
type Headers struct {
	// Version and VersionValue are a header that every request must have. Clients are
	// recognized by it at paths that several vendors serve.
	Version, VersionValue string
	// RequestID is the header with the id of a request; empty means X-Request-Id.
	RequestID string
	// ErrorType is a header with the type of an error.
	ErrorType string
	// Forwarded are request headers that are sent upstream if a client sets them. Names that
	// end in -Beta are lists.
	Forwarded []string
	// Shown are response headers, and ShownPrefixes prefixes of them, that are sent to
	// clients.
	Shown, ShownPrefixes []string
	// StatusInBody means that errors repeat the HTTP status in their body.
	StatusInBody bool
	// Codes means that errors have a type and a code, like OpenAI errors.
	Codes bool
	// Key is the header in which clients send their key, besides Authorization. KeyParameter
	// is the query parameter for it.
	Key, KeyParameter string
	// RateLimits are the headers about the limits of an account.
	RateLimits []RateLimit
}

// RateLimit names the headers with the remaining amount of a limit and its reset time.
type RateLimit struct{ Remaining, Reset string }

// Stream describes how a stream is framed and how it ends.
type Stream struct {
	Framing framing.Framing
	// OtherFraming is a second framing, which clients can choose or servers use unasked.
	OtherFraming framing.Framing
	// Heartbeat fills pauses. Nil means that clients do not accept any.
	Heartbeat []byte
	// HasContent reports whether the data of an event has content. Nil means that all data has.
	HasContent func(data []byte) bool
	// End describes which events end a response.
	End End
	// Usage is the field with token counts.
	Usage Field
	// UsageOnRequest means that clients get token counts only on request, in a chunk that
	// other clients do not expect.
	UsageOnRequest bool
	// Repeats means that the last event repeats the whole response.
	Repeats bool
	// FailureAfter returns the events of end, which end a stream with an error, so that they
	// follow the events of sent, which the client has. Nil means end unchanged.
	FailureAfter func(sent [][]byte, end []byte) []byte
	// Done is written after the last event of the server, if decoding dropped it.
	Done []byte
}

// State describes what the server stores of conversations.
type State struct {
	// Responses means that the server stores responses, their items and conversations, and
	// that clients refer to them by id.
	Responses bool
	// Threads, if not nil, means that the server stores conversations that clients continue by the id of
	// a message.
	Threads *Threads
	// IDPrefix is the prefix of the ids of stored responses.
	IDPrefix string
	// Unfinished are the native stops of a stored response that the server still works on.
	Unfinished []string
}

// Thread is the thread setting of a request.
type Thread struct {
	// Requested means that the server must store the conversation.
	Requested bool
	// Previous is the id of the message to continue with; empty begins a thread.
	Previous string
}

// Threads reads threads and writes their errors.
type Threads struct {
	// Field is the request field.
	Field string
	// Read reads its value from the current position of the reader.
	Read func(*jsonwire.Reader) Thread
	// Unsupported is the error of a server without threads: the client sends the whole
	// conversation from then on.
	Unsupported func() *dragoman.APIError
	// Unknown is the error for a message that is not stored: the client starts again.
	Unknown func(id string) *dragoman.APIError
}

// CallGuard checks the calls of a response that is passed through. A response with a call
// whose arguments are not valid JSON ends as incomplete (decision 78). Every other response
// passes unchanged.
type CallGuard interface {
	// Response checks a whole response.
	Response(body []byte) []byte
	// Pass checks whole events of a stream; Close returns the bytes left to send.
	Pass(events []byte) []byte
	Close() []byte
	// Blocked reports whether the guard changed the response.
	Blocked() bool
}

// Serving describes how a server accepts requests in the dialect.
type Serving struct {
	Routes []Route
	// SimulatorOnly means that the gateway does not serve the dialect.
	SimulatorOnly bool
	// Owns reports whether a path belongs to the dialect, for errors at unknown paths. Nil
	// owns no path.
	Owns func(method, path string) bool
	// Models writes lists of models.
	Models *Models
}

// Route is a path at which requests arrive.
type Route struct {
	// Path is a pattern of http.ServeMux. It may end in {rest...}.
	Path string
	// Call is the operation of every request to Path, if Read is nil.
	Call
	// Read reads the call from the URL: rest is the end of the path. It returns false if
	// there is no such operation.
	Read func(path, rest string, query url.Values) (Call, bool)
}

// Call is the operation that a client requests in a URL.
type Call struct {
	// Codec reads and writes the bodies; nil means the dialect's own.
	Codec dialect.Codec
	// InURL means that the URL has Model and Stream; otherwise the body has them.
	InURL  bool
	Model  string
	Stream bool
	// Count asks for the number of tokens.
	Count bool
}

// Variant is implemented by codecs of secondary endpoints, which are never used to call an
// upstream.
type Variant interface{ Variant() }

// Of returns the descriptor of a codec. A codec from outside this module has none: it gets
// an empty one with the framing of server-sent events.
func Of(c dialect.Codec) *Wire {
	if d, ok := c.(interface{ Wire() *Wire }); ok {
		return d.Wire()
	}
	return &foreign
}

var foreign = Wire{
	Body:   Body{Messages: "messages", Tools: "/tools"},
	Stream: Stream{Framing: framing.SSE},
}
