// Package wire describes what a dialect is on the network: where its messages are in a
// body, how its streams are framed and how they end, at which paths and with which headers
// it is served. Each package below dialect has one [Wire]. The provider, the gateway, the
// simulator and the command read it, so that none of them compares the names of dialects.
//
// Rules of the canonical conversion are not here: they are in [targets.Limits].
package wire

import (
	"encoding/json"
	"net/url"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Wire describes one dialect. It is shared, and must not be changed.
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
	// Summaries says that clients show reasoning only as a summary, if they ask for one.
	Summaries bool
	// Relayed says that servers relay the errors of other APIs.
	Relayed bool
	// StopWords are the native stop reasons to write; a response without one is of an older
	// server.
	StopWords map[dragoman.StopReason]string
}

// Body says where the parts of bodies are.
type Body struct {
	// Messages is the field of a request with the conversation.
	Messages string
	// Tools is the JSON pointer of the tools of a request.
	Tools string
	// ToolSettings are the places of the settings that the API refuses without tools.
	ToolSettings []string
	// WrapTool returns a tool as an element of Tools. Nil returns it unchanged.
	WrapTool func(json.RawMessage) json.RawMessage
	// Response is the place of the messages in a response: a field, a JSON pointer, or empty
	// for the whole body.
	Response string
	// Chunk are the places of the message in a chunk of a stream. Empty means that a stream
	// has whole items or blocks.
	Chunk []string
	// Roles are the roles of messages that error messages list. AnyRole says that servers
	// accept every role.
	Roles   []string
	AnyRole bool
	// StreamsByDefault says that a request without "stream" asks for a stream.
	StreamsByDefault bool
	// DefaultTag is the tag, with its colon, that a model name without one means. Clients may
	// add it.
	DefaultTag string
	// Empty reports whether a request without messages only prepares its model, and why.
	Empty func(body []byte) (reason string, ok bool)
	// Prepared returns the response to such a request.
	Prepared func(model, created, reason string) []byte
}

// Endpoint says where the vendor serves the dialect.
type Endpoint struct {
	// BaseURL is empty if it names a region.
	BaseURL string
	// Path and StreamPath may contain {model}. An empty StreamPath is Path.
	Path, StreamPath string
	// ModelPath returns the model for {model} and the path, for names with a kind in front.
	ModelPath func(model, path string) (string, string)
	// SameModel returns other names that the server takes for the same model. Nil means that
	// each model has one name.
	SameModel func(model string) []string
	// Count is where tokens are counted: a suffix of the path, or with a colon in front,
	// what replaces the method behind the last colon.
	Count string
	// CountField is the field of a count.
	CountField string
	// CountBody is the body of a count, with one verb for the number.
	CountBody string
	// Counted returns the request in the body of a request to count. Nil means the body.
	Counted func(body []byte) []byte
	// OwnServer says that a client of the dialect talks to the vendor only if it has no base
	// URL of its own: many servers speak the dialect.
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
	// StatusInBody says that errors repeat the HTTP status in their body.
	StatusInBody bool
	// Codes says that errors have a type and a code as those of OpenAI.
	Codes bool
	// Key is the header in which clients send their key, besides Authorization. KeyParameter
	// is the query parameter for it.
	Key, KeyParameter string
	// RateLimits are the headers about the limits of an account.
	RateLimits []RateLimit
}

// RateLimit names the headers that say how much of a limit remains, and when it is reset.
type RateLimit struct{ Remaining, Reset string }

// Stream says how a stream is framed and how it ends.
type Stream struct {
	Framing framing.Framing
	// OtherFraming is a second framing, which clients can choose or servers use unasked.
	OtherFraming framing.Framing
	// Heartbeat fills pauses. Nil means that clients do not accept any.
	Heartbeat []byte
	// HasContent reports whether the data of an event has content. Nil means that all has.
	HasContent func(data []byte) bool
	// End says which events end a response.
	End End
	// Usage is the field with token counts.
	Usage Field
	// UsageOnRequest says that clients get token counts only if they ask, in a chunk that
	// others do not expect.
	UsageOnRequest bool
	// Repeats says that the last event repeats the whole response.
	Repeats bool
	// FailureAfter returns the events of end, which end a stream with an error, so that they
	// follow the events of sent, which the client has. Nil means end as it is.
	FailureAfter func(sent [][]byte, end []byte) []byte
	// Done is written after the last event of the server's own, if decoding dropped it.
	Done []byte
}

// State says what the server stores of conversations.
type State struct {
	// Responses says that the server stores responses, their items and conversations, and
	// that clients refer to them by id.
	Responses bool
	// Threads says that the server stores conversations that clients continue by the id of
	// a message.
	Threads *Threads
	// IDPrefix is the prefix of the ids of stored responses.
	IDPrefix string
	// Unfinished are the native stops of a stored response that the server still works on.
	Unfinished []string
}

// Thread is what a request says about a thread.
type Thread struct {
	// Asked says that the server is to store the conversation.
	Asked bool
	// Previous is the id of the message to continue with; empty begins a thread.
	Previous string
}

// Threads reads threads and writes their errors.
type Threads struct {
	// Field is the request field.
	Field string
	// Read reads its value, at which the reader is.
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
	// Pass checks whole events of a stream, and Close returns the bytes left to send.
	Pass(events []byte) []byte
	Close() []byte
	// Blocked reports whether the guard changed the response.
	Blocked() bool
}

// Serving says how a server takes requests in the dialect.
type Serving struct {
	Routes []Route
	// SimulatorOnly says that the gateway does not serve the dialect.
	SimulatorOnly bool
	// Owns reports whether a path belongs to the dialect, for errors at unknown paths. Nil
	// owns none.
	Owns func(method, path string) bool
	// Models writes lists of models.
	Models *Models
}

// Route is a path at which requests arrive.
type Route struct {
	// Path is a pattern of http.ServeMux. It may end in {rest...}.
	Path string
	// Call is what every request there asks for, if Read is nil.
	Call
	// Read reads the call from the URL: rest is the end of the path. It returns false if
	// there is no such operation.
	Read func(path, rest string, query url.Values) (Call, bool)
}

// Call is what a client asks for in a URL.
type Call struct {
	// Codec reads and writes the bodies; nil means the dialect's own.
	Codec dialect.Codec
	// InURL says that Model and Stream are those of the URL; otherwise the body has them.
	InURL  bool
	Model  string
	Stream bool
	// Count asks for the number of tokens.
	Count bool
}

// Variant is implemented by codecs of secondary endpoints, which no upstream is called
// with.
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
