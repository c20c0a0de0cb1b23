// Package sniff guesses what a document is: its dialect, and whether it is a request, a
// response, a stream, a list of messages or a tool.
//
// A guess is based on structure: which fields are in which positions, and their types.
// Words inside texts, descriptions and arguments never count, because people quote one
// API to another. If several dialects fit, the guess is the most likely one, and lists
// the others. If a document contradicts itself, there is no guess, but an error that
// names the dialects.
package sniff

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Kind is the kind of a document.
type Kind string

// The kinds of objects.
const (
	Request  Kind = "request"
	Response Kind = "response"
	Stream   Kind = "stream"
	Messages Kind = "messages"
	Tools    Kind = "tools"
)

// Kinds lists all kinds, in the order of help texts.
var Kinds = []Kind{Request, Response, Stream, Messages, Tools}

// MCP denotes tools as MCP servers list them. It is not a dialect, but a source of
// tools.
const MCP dragoman.Dialect = "mcp"

// Canonical denotes the JSON that the root package stores. It is not a wire format, but
// the form to which all of them are converted.
const Canonical dragoman.Dialect = "canonical"

// Guess is the result for a document.
type Guess struct {
	Dialect dragoman.Dialect
	Kind    Kind
	// Because describes how it was recognized.
	Because string
	// Or lists dialects that fit as well.
	Or []dragoman.Dialect
}

// HeadSize is the number of bytes at the beginning of a document that IsStream and Of
// need.
const HeadSize = 64 << 10

// IsStream reports whether a document that begins with head is a stream: server-sent
// events, lines of JSON, binary frames, or an array that is sent in chunks.
func IsStream(head []byte) bool {
	_, ok := streamHead(head)
	return ok
}

// streamHead returns the first event of a stream, as JSON.
func streamHead(head []byte) (event []byte, ok bool) {
	if payload, ok := frame(head); ok {
		return payload, true
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if isSSE(text) {
		return firstData(text), true
	}
	if first, rest, ok := firstValue(text); ok && first[0] == '{' && bytes.HasPrefix(rest, []byte("{")) {
		return first, true // lines of JSON
	}
	if len(text) > 0 && text[0] == '[' {
		if first, _, ok := firstValue(bytes.TrimLeft(text[1:], " \t\r\n")); ok && isChunk(wire.Open(first)) {
			return first, true
		}
	}
	return nil, false
}

// isChunk reports whether an object is an event of a dialect that streams one JSON array.
func isChunk(m wire.Object) bool {
	for _, codec := range dialects.All() {
		w := wire.Of(codec)
		if w.Stream.OtherFraming == framing.JSONArray && slices.ContainsFunc(w.Signs.Stream, func(s wire.Sign) bool { return s.Holds(m) }) {
			return true
		}
	}
	return false
}

// frame returns the payload of a binary frame that head begins with.
func frame(head []byte) ([]byte, bool) {
	const prelude = 12
	if len(head) < prelude || crc32.ChecksumIEEE(head[:8]) != binary.BigEndian.Uint32(head[8:]) {
		return nil, false
	}
	total, headers := int(binary.BigEndian.Uint32(head)), int(binary.BigEndian.Uint32(head[4:]))
	if prelude+headers > len(head) || total < prelude+headers+4 {
		return nil, true
	}
	return head[prelude+headers : min(total-4, len(head))], true
}

func isSSE(text []byte) bool {
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(text, []byte(field)) {
			return true
		}
	}
	return false
}

// firstData returns the data of the first event that has any.
func firstData(text []byte) []byte {
	for line := range bytes.Lines(text) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '{' {
				return data
			}
		}
	}
	return nil
}

// firstValue splits off the JSON value at the beginning of text.
func firstValue(text []byte) (value, rest []byte, ok bool) {
	r := jsonwire.NewReader(text)
	value = r.Raw()
	if r.Err() != nil || len(value) == 0 {
		return nil, nil, false
	}
	return value, bytes.TrimLeft(text[len(value):], " \t\r\n"), true
}

// specified is the reason for a guess without evidence in the document.
const specified = "it was specified"

// Of guesses what data is; for a stream its beginning is enough. kind and dialect, if
// not empty, are already known. The error is ErrUnknown, a *NotChatError or an
// *AmbiguousError.
func Of(data []byte, kind Kind, dialect dragoman.Dialect) (Guess, error) {
	doc := data
	if kind == "" || kind == Stream {
		event, ok := streamHead(data)
		switch {
		case ok:
			kind, doc = Stream, event
		case kind == Stream && dialect == "":
			return Guess{}, ErrUnknown
		}
	}
	if kind != "" && dialect != "" {
		return Guess{Dialect: dialect, Kind: kind, Because: specified}, nil
	}
	if kind == Stream {
		return streamed(data, doc, dialect)
	}
	doc = bytes.TrimLeft(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf")), " \t\r\n")
	if g, ok := canonical(doc, kind, dialect); ok {
		return g, nil
	}
	if len(doc) > 0 && doc[0] == '[' {
		return list(doc, kind, dialect)
	}
	return object(doc, kind, dialect)
}

// canonical recognizes stored JSON: it has a version and consists of parts. No wire
// format has both.
func canonical(doc []byte, kind Kind, dialect dragoman.Dialect) (Guess, bool) {
	if dialect != "" && dialect != Canonical {
		return Guess{}, false
	}
	m, suffix := wire.Open(doc), ""
	if els := wire.Elements(doc); len(els) > 0 {
		m, suffix = els[0], "s"
	}
	if v := m["v"]; len(v) == 0 || v[0] < '0' || v[0] > '9' {
		return Guess{}, false
	}
	is := Kind("")
	because := ""
	switch {
	case suffix == "" && m.Has("messages", "instructions") && !wire.Any(m.List("messages"), hasContent):
		is, because = Request, "request"
	case suffix == "" && m.Has("output", "stop", "error") && !m.Has("object", "stopReason", "choices"):
		is, because = Response, "response"
	case hasParts(m):
		is, because = Messages, "message"+suffix
	case m.Has("name") && m.IsText("parameters"):
		is, because = Tools, "tool"+suffix
	}
	if is == "" || kind != "" && kind != is {
		return Guess{}, false
	}
	return Guess{Dialect: Canonical, Kind: is, Because: `it has a version "v", as a stored ` + because + " does"}, true
}

func hasParts(m wire.Object) bool { return m.Has("parts") }

func hasContent(m wire.Object) bool { return m.Has("content", "tool_calls") }

// streamed guesses the dialect of a stream that starts with event.
func streamed(data, event []byte, dialect dragoman.Dialect) (Guess, error) {
	m := wire.Open(event)
	if err := notChat(m); err != nil && dialect == "" {
		return Guess{}, err
	}
	if g, ok := choose(signs().stream, m, Stream, dialect); ok {
		return g, nil
	}
	if _, binary := frame(data); binary {
		for _, codec := range dialects.All() {
			if wire.Of(codec).Signs.Binary {
				return Guess{Dialect: codec.Dialect(), Kind: Stream, Because: "it is made of binary frames"}, nil
			}
		}
	}
	return Guess{}, ErrUnknown
}

// object guesses what one object is.
func object(doc []byte, kind Kind, dialect dragoman.Dialect) (Guess, error) {
	m := wire.Open(doc)
	other := notChat(m)
	if other != nil && dialect == "" {
		return Guess{}, other
	}
	unknown := ErrUnknown
	if other != nil {
		unknown = other
	}
	for _, try := range []struct {
		kind  Kind
		guess func() (Guess, error)
	}{
		{Response, func() (Guess, error) { return chosen(signs().response, m, Response, dialect) }},
		{Request, func() (Guess, error) { return narrow(requestOf(m), Request, dialect) }},
		{Tools, func() (Guess, error) { return chosen(signs().tool, m, Tools, dialect) }},
		{Messages, func() (Guess, error) { return narrow(messagesOf([]wire.Object{m}), Messages, dialect) }},
	} {
		if kind != "" && kind != try.kind {
			continue
		}
		if g, err := try.guess(); !errors.Is(err, ErrUnknown) {
			return g, err
		}
	}
	return Guess{}, unknown
}

// list guesses what the elements of a list are.
func list(doc []byte, kind Kind, dialect dragoman.Dialect) (Guess, error) {
	elements := wire.Elements(doc)
	best, found := Guess{}, false
	for _, el := range elements[:min(len(elements), 200)] {
		if kind != "" && kind != Tools {
			break
		}
		if g, ok := choose(signs().tool, el, Tools, dialect); ok && (!found || len(g.Or) < len(best.Or)) {
			best, found = g, true
		}
	}
	switch {
	case found:
		return best, nil
	case kind != "" && kind != Messages:
		return Guess{}, ErrUnknown
	}
	return narrow(messagesOf(elements), Messages, dialect)
}

// choose returns a guess from the first sign that holds for an object; if a dialect is
// given, only signs of that dialect count.
func choose(signs []sign, m wire.Object, kind Kind, dialect dragoman.Dialect) (Guess, bool) {
	for _, s := range signs {
		if !s.Holds(m) || dialect != "" && !slices.Contains(s.dialects, dialect) {
			continue
		}
		g := Guess{Dialect: s.dialects[0], Kind: kind, Because: s.Because, Or: s.dialects[1:]}
		if dialect != "" {
			g.Dialect, g.Or = dialect, nil
		}
		return g, true
	}
	return Guess{}, false
}

func chosen(signs []sign, m wire.Object, kind Kind, dialect dragoman.Dialect) (Guess, error) {
	g, ok := choose(signs, m, kind, dialect)
	if !ok {
		return Guess{}, ErrUnknown
	}
	return g, nil
}

// mcpTools reports whether an object has tools as MCP servers list them.
func mcpTools(m wire.Object) bool {
	return wire.Any(m.List("tools"), func(el wire.Object) bool { return el.Has("inputSchema") })
}

// mcpSigns are the signs of tools from an MCP server, which uses no dialect.
var mcpSigns = []sign{
	{[]dragoman.Dialect{MCP}, wire.Sign{Rank: 70, Because: `it has an "inputSchema", as MCP servers list tools`, Holds: func(m wire.Object) bool {
		return m.Has("name") && m.Has("inputSchema")
	}}},
	{[]dragoman.Dialect{MCP}, wire.Sign{Rank: 80, Because: `it is a list of tools of an MCP server`, Holds: func(m wire.Object) bool {
		return mcpTools(m) && !m.Has("messages")
	}}},
	{[]dragoman.Dialect{MCP}, wire.Sign{Rank: 90, Because: `it is a response of an MCP server with its tools`, Holds: func(m wire.Object) bool {
		return m.Has("jsonrpc") && mcpTools(m.In("result"))
	}}},
}
