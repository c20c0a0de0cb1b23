package dragoman

import "encoding/json"

// SchemaAccessor says what tool definitions of one format mean. It must not
// keep or change obj.
type SchemaAccessor interface {
	Format() Format
	// InspectSchema returns the tools obj defines: one, or the members of a
	// namespace.
	InspectSchema(obj json.RawMessage) ([]ToolSpec, Report, error)
}

// CallAccessor says what calls of one format mean. It may also have the method
//
//	Recognizes(obj json.RawMessage) bool
//
// which reports whether an object looks like a call of the accessor's format, so that a
// registry can read a call without being given its format. A call that no accessor and no
// built-in format recognizes is tried with the other accessors, in order.
type CallAccessor interface {
	Format() Format
	InspectCall(obj json.RawMessage) (*ToolCall, Report, error)
}

// ResultAccessor says what results of one format mean.
type ResultAccessor interface {
	Format() Format
	InspectResult(obj json.RawMessage) (*ToolResult, Report, error)
}

// Adapter writes tool objects in another format. From names the format it
// reads; an empty From means that it writes from the canonical view.
type Adapter interface {
	// Kind is the kind of object that it writes: "schema", "call" or "result".
	Kind() string
	From() Format
	To() Format
	// Adapt converts one object. Native is set for a direct adapter; for one
	// that writes from the canonical view exactly one of the other fields is.
	Adapt(in AdapterInput) (json.RawMessage, Report, error)
}

// AdapterInput is what an adapter converts.
type AdapterInput struct {
	Native json.RawMessage
	Schema *ToolSpec
	Call   *ToolCall
	Result *ToolResult
}

// Contribution is what one party (config, provider, extension, tool) adds to
// a request's interop registry. Contributing is additive: it never removes
// what another contributed; where two serve the same format, the earlier one
// in the composition wins.
type Contribution struct {
	// Source names the contributor in listings.
	Source   string
	Schemas  []SchemaAccessor
	Calls    []CallAccessor
	Results  []ResultAccessor
	Adapters []Adapter
	// Accepts lists schema formats that the stack takes beyond the dialect's
	// own.
	Accepts []Format
}
