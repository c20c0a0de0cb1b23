package rpc

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

var (
	// ErrLost reports that no response will come: the process, stream or connection ended
	// first. It is unknown whether the request was processed, unless NotDelivered of the
	// request was called.
	ErrLost = errors.New("connection lost before the response")
	// ErrSessionLost reports that the server no longer knows the session. The connection
	// has ended; dial again.
	ErrSessionLost = errors.New("the server no longer knows the session")
	// ErrClosed reports that Close ended the connection.
	ErrClosed = errors.New("the connection is closed")
	// ErrEnded reports that the server ended a request with a notification instead of a
	// response, which it may do with subscriptions/listen over stdio.
	ErrEnded = errors.New("the server ended the request")
	// ErrTooLarge reports a message above the limit of the connection.
	ErrTooLarge = errors.New("the message exceeds the size limit")
)

// HTTPError is a response of a server that is not one of MCP: its status is not a success, or
// its body is something else. A response of another status than 401 and 403 whose body is a
// JSON-RPC error becomes an [Error] instead.
type HTTPError struct {
	Status int
	// ContentType is the type of the body, and Body its beginning, as text.
	ContentType, Body string
	// RetryAfter is the time that the server asks to wait; 0 means none.
	RetryAfter time.Duration
	// RPC is the JSON-RPC error in the body, if there is one. errors.As finds it.
	RPC *Error
}

func (e *HTTPError) Error() string {
	text := fmt.Sprintf("the server answered HTTP %d", e.Status)
	if name := http.StatusText(e.Status); name != "" {
		text += " " + name
	}
	switch {
	case e.RPC != nil:
		text += ": " + e.RPC.Error()
	case e.Status < 300 && e.ContentType != "":
		text += " with " + e.ContentType + ", want application/json or text/event-stream"
	case e.Status < 300:
		text += " without a JSON-RPC response"
	}
	return text
}

func (e *HTTPError) Unwrap() error {
	if e.RPC == nil {
		return nil // not a nil *Error in an interface
	}
	return e.RPC
}
