package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Bounds of received messages.
const (
	maxBatch = 1000 // messages of a batch
	maxID    = 1024 // bytes of an id
)

// Message is a message that a server sent: a request (ID and Method), a notification (Method),
// or a response (Result or Error).
type Message struct {
	ID     ID
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *Error
	// Invalid, if set, is what is wrong with a message whose id is known: the call that waits
	// for it fails.
	Invalid error
}

// IsResponse reports whether the message answers a request.
func (m *Message) IsResponse() bool { return m.Method == "" }

// IsRequest reports whether the message is a request.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != "" }

// Decode reads one message, or a batch of them, as servers of 2025-03-26 may send. Messages
// share the memory of data. Keys are matched with their case. A key that occurs twice in a
// message, or anywhere in its parameters, makes it invalid, because readers disagree which one
// counts (pitfall K38).
func Decode(data []byte) ([]Message, error) {
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\ufffd"))
	}
	r := jsonwire.Borrow(data)
	defer r.Return()
	if r.Kind() != '[' {
		m, err := decode(r)
		if err == nil {
			err = r.End()
		}
		if err != nil {
			return nil, err
		}
		return []Message{m}, nil
	}
	var raw [][]byte
	for range r.Array() {
		if len(raw) == maxBatch {
			return nil, fmt.Errorf("a batch of more than %d messages", maxBatch)
		}
		raw = append(raw, r.Raw())
	}
	if err := errors.Join(r.Err(), r.End()); err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		return nil, errors.New("an empty batch")
	}
	all := make([]Message, 0, len(raw))
	for i, one := range raw {
		r := jsonwire.Borrow(one)
		m, err := decode(r)
		r.Return()
		if err != nil {
			return nil, fmt.Errorf("message %d of the batch: %w", i+1, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// envelope has the members of a message.
type envelope struct {
	id, method, params, result, failed []byte
	repeated                           string
}

// set stores a value, unless the key already occurred.
func (e *envelope) set(to *[]byte, key string, value []byte) {
	if *to != nil {
		e.repeated = key
		return
	}
	*to = value
}

func decode(r *jsonwire.Reader) (Message, error) {
	if r.Kind() != '{' {
		if err := r.Err(); err != nil {
			return Message{}, err
		}
		return Message{}, errors.New("a message is an object")
	}
	var e envelope
	var version []byte
	for key := range r.Object() {
		switch string(key) {
		case "jsonrpc":
			e.set(&version, "jsonrpc", r.Raw())
		case "id":
			e.set(&e.id, "id", r.Raw())
		case "method":
			e.set(&e.method, "method", r.Raw())
		case "params":
			e.set(&e.params, "params", r.Raw())
		case "result":
			e.set(&e.result, "result", r.Raw())
		case "error":
			e.set(&e.failed, "error", r.Raw())
		default:
			r.Skip()
		}
	}
	if err := r.Err(); err != nil {
		return Message{}, err
	}
	if jsonwire.Unquote(version) != "2.0" {
		return Message{}, errors.New(`a message needs "jsonrpc":"2.0"`)
	}
	return e.message()
}

func (e *envelope) message() (Message, error) {
	// Null is the value of members that do not apply. An id is never null in MCP, except in
	// an error whose request could not be read.
	for _, member := range []*[]byte{&e.id, &e.method, &e.params, &e.failed} {
		if string(*member) == "null" {
			*member = nil
		}
	}
	if string(e.result) == "null" && e.failed != nil {
		e.result = nil
	}
	var m Message
	if e.id != nil {
		id, err := ParseID(e.id)
		if err != nil {
			return Message{}, err
		}
		m.ID = id
	}
	if e.repeated == "id" {
		return Message{}, errors.New(`a message with two ids`)
	}
	if err := e.fill(&m); err != nil {
		if m.ID == "" || e.method != nil {
			return Message{}, err
		}
		return Message{ID: m.ID, Invalid: err}, nil
	}
	return m, nil
}

func (e *envelope) fill(m *Message) error {
	switch {
	case e.repeated != "":
		return fmt.Errorf("a message with the key %q twice", e.repeated)
	case e.method != nil:
		if m.Method = jsonwire.Unquote(e.method); m.Method == "" {
			return errors.New("the method of a message is a non-empty string")
		}
		if e.params == nil {
			return nil
		}
		if e.params[0] != '{' {
			return errors.New("the parameters of a message are an object")
		}
		if !jsonwire.Unambiguous(e.params) {
			return errors.New("the parameters of a message have a key twice")
		}
		m.Params = e.params
		return nil
	case e.result != nil && e.failed != nil:
		return errors.New("a response with a result and an error")
	case e.failed != nil:
		failed, err := decodeError(e.failed)
		m.Error = failed
		return err
	case e.result == nil:
		return errors.New("a message without method, result and error")
	case m.ID == "":
		return errors.New("a result without the id of its request")
	}
	if key := repeatedKey(e.result); key != "" {
		return fmt.Errorf("a result with the key %q twice", key)
	}
	m.Result = e.result
	return nil
}

// repeatedKey returns a key that an object has twice at its top level. What is below belongs to
// the reader of the result: one bad tool is no reason to lose a whole list.
func repeatedKey(object []byte) string {
	if object[0] != '{' {
		return ""
	}
	r := jsonwire.Borrow(object)
	defer r.Return()
	var few [16]string // results have few keys
	seen := few[:0]
	var many map[string]bool
	for key := range r.Object() {
		switch {
		case many[string(key)]:
			return string(key)
		case many != nil:
			many[string(key)] = true
		default:
			for _, s := range seen {
				if s == string(key) {
					return s
				}
			}
			if seen = append(seen, string(key)); len(seen) == len(few) {
				many = map[string]bool{}
				for _, s := range seen {
					many[s] = true
				}
			}
		}
		r.Skip()
	}
	return ""
}

func decodeError(raw []byte) (*Error, error) {
	if raw[0] != '{' {
		return nil, errors.New("the error of a response is an object")
	}
	if key := repeatedKey(raw); key != "" {
		return nil, fmt.Errorf("an error with the key %q twice", key)
	}
	e := &Error{}
	r := jsonwire.Borrow(raw)
	defer r.Return()
	for key := range r.Object() {
		switch string(key) {
		case "code":
			e.Code = r.Integer()
		case "message":
			e.Message = r.String()
		case "data":
			e.Data = r.Raw()
		default:
			r.Skip()
		}
	}
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("the error of a response: %w", err)
	}
	return e, nil
}

// ParseID reads an id: a string, which keeps its text, or an integer, which becomes decimal.
func ParseID(raw []byte) (ID, error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || len(raw) > maxID:
		return "", fmt.Errorf("an id has 1 to %d bytes", maxID)
	case raw[0] == '"':
		return ID(raw), nil
	case raw[0] != '-' && (raw[0] < '0' || raw[0] > '9'):
		return "", fmt.Errorf("an id is a string or an integer, not %.20s", raw)
	case !bytes.ContainsAny(raw, ".eE") && string(raw) != "-0":
		return ID(raw), nil
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53 {
		return "", fmt.Errorf("an id is a string or an integer, not %.20s", raw)
	}
	return ID(strconv.FormatInt(int64(n), 10)), nil
}

// AppendRequest appends a request to dst. Parameters are an object; nil means none.
func AppendRequest(dst []byte, id ID, method string, params json.RawMessage) ([]byte, error) {
	return appendCall(dst, id, method, params)
}

// AppendNotification appends a notification to dst.
func AppendNotification(dst []byte, method string, params json.RawMessage) ([]byte, error) {
	return appendCall(dst, "", method, params)
}

func appendCall(dst []byte, id ID, method string, params json.RawMessage) ([]byte, error) {
	if object := bytes.TrimSpace(params); len(params) > 0 && (len(object) == 0 || object[0] != '{') {
		return dst, fmt.Errorf("%s: parameters must be an object, not %.20q", method, params)
	}
	w := open(id, len(method)+len(params))
	w.StringField("method", method)
	if len(params) > 0 {
		w.RawField("params", params)
	}
	return finish(dst, w)
}

// AppendResult appends the response to a request that succeeded.
func AppendResult(dst []byte, id ID, result json.RawMessage) ([]byte, error) {
	w := open(id, len(result))
	if result == nil {
		result = json.RawMessage("{}")
	}
	w.RawField("result", result)
	return finish(dst, w)
}

// AppendError appends the response to a request that failed.
func AppendError(dst []byte, id ID, failure *Error) ([]byte, error) {
	w := open(id, len(failure.Message)+len(failure.Data))
	w.Key("error")
	w.BeginObject()
	w.IntField("code", failure.Code)
	w.StringField("message", failure.Message)
	if failure.Data != nil {
		w.RawField("data", failure.Data)
	}
	w.EndObject()
	return finish(dst, w)
}

func open(id ID, size int) *jsonwire.Writer {
	w := &jsonwire.Writer{Buf: make([]byte, 0, size+64)}
	w.BeginObject()
	w.StringField("jsonrpc", "2.0")
	if id != "" {
		w.RawField("id", []byte(id))
	}
	return w
}

// finish appends the message in one line: a line end in JSON is white space between tokens.
func finish(dst []byte, w *jsonwire.Writer) ([]byte, error) {
	w.EndObject()
	if err := w.Err(); err != nil {
		return dst, err
	}
	for i, c := range w.Buf {
		if c == '\n' || c == '\r' {
			w.Buf[i] = ' '
		}
	}
	if dst == nil {
		return w.Buf, nil
	}
	return append(dst, w.Buf...), nil
}

// MetaString returns a string in the _meta of parameters or of a result, or "".
func MetaString(params json.RawMessage, key string) string {
	return jsonwire.Unquote(metaValue(params, key))
}

// MetaID returns the id in the _meta of parameters, or "".
func MetaID(params json.RawMessage, key string) ID {
	return fieldID(metaValue(params, key))
}

// FieldID returns the id that is a field of parameters, or "".
func FieldID(params json.RawMessage, key string) ID { return fieldID(field(params, key)) }

func fieldID(raw []byte) ID {
	id, err := ParseID(raw)
	if err != nil {
		return ""
	}
	return id
}

func metaValue(params json.RawMessage, key string) []byte { return field(field(params, "_meta"), key) }

// field returns the value of a field of an object, or nil.
func field(object []byte, key string) (value []byte) {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	r := jsonwire.Borrow(object)
	defer r.Return()
	for k := range r.Object() {
		if string(k) == key {
			return r.Raw()
		}
		r.Skip()
	}
	return nil
}
