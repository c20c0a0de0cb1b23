package dragoman

import "encoding/json"

// SchemaAccessor reads tool definitions of one format. It must not keep or change obj.
type SchemaAccessor interface {
	Format() Format
	// InspectSchema returns the tools that obj defines: a single tool, or all tools of a
	// namespace.
	InspectSchema(obj json.RawMessage) ([]ToolSpec, Report, error)
}

// CallAccessor reads tool calls of one format. It may also have the method
//
//	Recognizes(obj json.RawMessage) bool
//
// which reports whether an object looks like a call of this format, so that a registry can read
// a call whose format the caller does not name. If no accessor and no built-in format
// recognizes a call, the registry tries the accessors without the method, in order.
type CallAccessor interface {
	Format() Format
	InspectCall(obj json.RawMessage) (*ToolCall, Report, error)
}

// ResultAccessor reads tool results of one format.
type ResultAccessor interface {
	Format() Format
	InspectResult(obj json.RawMessage) (*ToolResult, Report, error)
}

// Adapter writes tool objects in another format. From returns the format it reads; an empty
// From means that it converts the canonical value.
type Adapter interface {
	// Kind returns the kind of object that the adapter writes: "schema", "call" or "result".
	Kind() string
	From() Format
	To() Format
	// Adapt converts one object. For a direct adapter, in.Native is set. For an adapter of
	// canonical values, exactly one of the other fields is set.
	Adapt(in AdapterInput) (json.RawMessage, Report, error)
}

// AdapterInput is the input of [Adapter.Adapt].
type AdapterInput struct {
	Native json.RawMessage
	Schema *ToolSpec
	Call   *ToolCall
	Result *ToolResult
}

// Contribution holds the accessors and adapters that one contributor (config, provider,
// extension, tool) adds to the interop registry of a request. A contribution never removes
// another one. If two contributions serve the same format, the earlier one wins.
type Contribution struct {
	// Source names the contributor in listings.
	Source   string
	Schemas  []SchemaAccessor
	Calls    []CallAccessor
	Results  []ResultAccessor
	Adapters []Adapter
	// Accepts lists the schema formats that the stack accepts in addition to those of the
	// dialect.
	Accepts []Format
}
