package mcpserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// field is one field of a result, in the order of the wire.
type field struct {
	name  string
	value json.RawMessage
}

// rawResult is a result whose JSON this package writes itself. It keeps the bytes of schemas
// and data, which the types of the SDK do not.
type rawResult struct {
	mcp.ResultBase
	fields []field
}

func (r *rawResult) add(name string, value json.RawMessage) *rawResult {
	r.fields = append(r.fields, field{name, value})
	return r
}

func (r *rawResult) set(name string, value any) *rawResult { return r.add(name, encode(value)) }

// MarshalJSON writes the fields and _meta.
func (r *rawResult) MarshalJSON() ([]byte, error) {
	w := jsonwire.Writer{}
	w.BeginObject()
	meta := len(r.Meta) > 0
	for _, f := range r.fields {
		value := f.value
		if f.name == "_meta" && meta { // that of another server
			for _, name := range slices.Sorted(keys(r.Meta)) {
				value = jsonwire.With(value, name, encode(r.Meta[name]))
			}
			meta = false
		}
		w.Key(f.name)
		w.Known(value)
	}
	if meta {
		w.QuotedKey("_meta")
		w.Known(encode(map[string]any(r.Meta)))
	}
	w.EndObject()
	return w.Buf, nil
}

// encode returns the JSON of a value that always has one, without HTML escapes.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Error codes that the SDK does not name.
const (
	codeHeaderMismatch    = -32020
	codeMissingCapability = -32021
	codeResourceNotFound  = -32002 // until 2025-11-25
)

func rpcError(code int64, message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: message}
}

func invalidParams(message string) *jsonrpc.Error {
	return rpcError(jsonrpc.CodeInvalidParams, message)
}

func notFound(method string) *jsonrpc.Error {
	return rpcError(jsonrpc.CodeMethodNotFound, "method not found: "+method)
}

// missingCapability is the error of a request that the client cannot complete, because it did
// not declare the capabilities, such as "sampling" or "extensions.io.modelcontextprotocol/tasks".
type missingCapability struct{ need []string }

func (e *missingCapability) Error() string {
	return "the client does not support " + strings.Join(e.need, ", ") + ", which this request needs"
}

func (e *missingCapability) rpc() *jsonrpc.Error {
	required := map[string]any{}
	for _, name := range slices.Sorted(slices.Values(e.need)) {
		switch name {
		case CapTasks:
			required["extensions"] = map[string]any{tasksExtension: struct{}{}}
		case CapElicitation:
			required["elicitation"] = map[string]any{"form": struct{}{}}
		case CapElicitationURL:
			required["elicitation"] = map[string]any{"url": struct{}{}}
		default:
			required[name] = struct{}{}
		}
	}
	err := rpcError(codeMissingCapability, e.Error())
	err.Data = encode(map[string]any{"requiredCapabilities": required})
	return err
}
