// Package rpc has the messages of MCP, JSON-RPC 2.0, and the interface of a connection to a
// server. Parameters and results stay raw JSON: what this program does not know survives.
package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

// The revisions of the protocol that this program speaks, the oldest first.
const (
	Revision20241105 = "2024-11-05"
	Revision20250326 = "2025-03-26"
	Revision20250618 = "2025-06-18"
	Revision20251125 = "2025-11-25"
	Revision20260728 = "2026-07-28"
)

// Modern reports whether a revision has no handshake and no sessions: 2026-07-28 and later.
// Revisions are dates, so they compare as text.
func Modern(revision string) bool { return revision >= Revision20260728 }

// ID is the raw JSON of a request's id: a string or an integer. The zero ID belongs to no
// request.
type ID string

// Error is a JSON-RPC error of the other side.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// maxErrorText limits the message of a server in the text of an error.
const maxErrorText = 2 << 10

// Error returns the beginning of the message, without characters that could change a terminal,
// and the code.
func (e *Error) Error() string {
	text := e.Message
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "… (cut)"
	}
	return fmt.Sprintf("%s (code %d)", textkit.Visible(text), e.Code)
}

// Request is a request to the server.
type Request struct {
	Method string
	// Params is an object; nil means no parameters.
	Params json.RawMessage
	// Name is the value of the header Mcp-Name, and Headers are further headers, such as
	// Mcp-Param-Path. Values are plain text: the connection encodes them. Only HTTP sends
	// them, and only in modern revisions.
	Name    string
	Headers map[string]string
	// NotDelivered, if set, is called when the connection knows that the server has not
	// processed the request, before Call returns an error: it may be sent again.
	NotDelivered func()
}

// Incoming is a request or a notification of the server.
type Incoming struct {
	// ID is empty for a notification.
	ID     ID
	Method string
	Params json.RawMessage
	// During is the call on whose response stream the message arrived, or, over stdio, the
	// call of subscriptions/listen to which a notification belongs; nil if it is unknown.
	During *Request
}

// Handler receives what a server sends on its own account. The methods are called in the order
// of the messages of a stream, must return soon, and may be called concurrently for different
// streams.
type Handler interface {
	// Notification handles a notification.
	Notification(in Incoming)
	// Request handles a request: answer it with [Conn.Respond], now or later.
	Request(in Incoming)
}

// Conn is a connection to one server: a process, or a series of HTTP requests. It is safe for
// concurrent use.
type Conn interface {
	// Call sends a request and waits for its result. The error is an *Error if the server
	// answered with one. If ctx ends, Call cancels the request as the revision demands,
	// ignores a late response and returns the cause of ctx.
	Call(ctx context.Context, r *Request) (json.RawMessage, error)
	// Notify sends a notification.
	Notify(ctx context.Context, method string, params json.RawMessage) error
	// Respond answers a request of the server. A nil failure means success with result.
	Respond(ctx context.Context, id ID, result json.RawMessage, failure *Error) error
	// SetRevision sets the negotiated revision. Before it, requests carry no revision in
	// their headers unless their _meta names one.
	SetRevision(revision string)
	// Done is closed when the connection has ended, and Err is then the reason.
	Done() <-chan struct{}
	Err() error
	// Close ends the connection and waits, for a bounded time, until everything it started
	// has ended.
	Close() error
}

// Dialer opens a connection. A lost connection is replaced by dialing again.
type Dialer interface {
	Dial(ctx context.Context, h Handler) (Conn, error)
}
