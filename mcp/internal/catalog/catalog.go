package catalog

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Default limits of an import.
const (
	defaultMaxTools       = 10_000
	defaultMaxToolBytes   = 256 << 10
	defaultMaxTotalBytes  = 32 << 20
	defaultMaxDescription = 4 << 10
	maxTitle              = 256
	maxDiagnostics        = 1_000
)

// Options are the settings of one server. The zero value imports all tools under their own
// names, and every call needs approval.
type Options struct {
	// Prefix names tools mcp_<server>__<tool>.
	Prefix bool
	// Namespace and Deferred are copied to each definition.
	Namespace string
	Deferred  bool
	// Include and Exclude are patterns of names at the server, in which * matches any text.
	// An empty Include selects all; Exclude wins.
	Include, Exclude []string
	// Approval maps patterns of names to "always" or "never". The longest matching pattern
	// decides; of two with the same length, "always" wins.
	Approval map[string]string
	// Trusted means that the annotations of the server count.
	Trusted bool
	// HTTP reports that calls travel over HTTP, where a tool with an invalid x-mcp-header
	// is unusable. Over stdio the annotation has no effect.
	HTTP bool

	// MaxTools limits the tools of the server, MaxToolBytes one definition, MaxTotalBytes
	// all of them together, and MaxDescription a description in bytes. Zero means 10,000,
	// 256 KiB, 32 MiB and 4 KiB.
	MaxTools, MaxToolBytes, MaxTotalBytes, MaxDescription int
}

// Result is the outcome of an import.
type Result struct {
	// Label is the name of the server.
	Label string
	// Tools are the usable tools that the filters select, in the order of the server.
	Tools []Tool
	// Diagnostics describe everything that was dropped, repaired or shortened, in the order
	// of the server. They include those of Tools.
	Diagnostics []Diagnostic
}

// Tool is one usable tool of a server.
type Tool struct {
	// Server is the label of the server.
	Server string
	// Name is the name at the server, which calls use. Public is the name for models: legal
	// for every provider, and independent of other tools and their order.
	Name   string
	Public string
	// Title is the display name; it may be empty.
	Title string
	// Spec is the definition for models: repaired, cleaned and shortened. Its Source is the
	// object of the server.
	Spec dragoman.ToolSpec
	// InputSchema is the schema for validation: the original bytes of the server, unless
	// they cannot be compiled; then it is the schema of Spec. It describes the arguments
	// after [Tool.Arguments]. Nil accepts any object.
	InputSchema json.RawMessage
	// Wrapped reports that the server expects a value that is not an object. Models pass it
	// in the property "value", and [Tool.Arguments] extracts it.
	Wrapped bool
	// OutputSchema is the schema of structured results; nil if there is none, or none that
	// can be compiled.
	OutputSchema json.RawMessage
	// Headers are the arguments that HTTP requests repeat as headers Mcp-Param-*, sorted by
	// header.
	Headers []HeaderParam
	// AppOnly hides the tool from models: only the user interface of the server calls it.
	AppOnly bool
	// NeedsApproval reports whether calls need approval by the settings of the server.
	NeedsApproval bool
	// Icons, Meta and Execution are the raw fields icons, _meta and execution; nil if absent.
	Icons, Meta, Execution json.RawMessage
	// Definition has the pinned fields as canonical JSON. See [Fingerprint].
	Definition json.RawMessage
	// Findings are the results of the scanner, by field and offset.
	Findings []Finding
	// Diagnostics describe what was repaired or shortened in this tool.
	Diagnostics []Diagnostic
}

// HeaderParam is an argument that HTTP requests repeat as a header.
type HeaderParam struct {
	// Path are the names of the properties that lead to the argument.
	Path []string
	// Header is the name after Mcp-Param-.
	Header string
	// Type is "string", "integer" or "boolean".
	Type string
}

// The kinds of diagnostic.
const (
	// Dropped means that the tool, or the named part of it, is not used.
	Dropped = "dropped"
	// Repaired means that the schema for models differs from that of the server.
	Repaired = "repaired"
	// Lowered means that a text was shortened or cleaned.
	Lowered = "lowered"
	// Renamed means that models get another name.
	Renamed = "renamed"
	// Hidden means that models do not get the tool.
	Hidden = "hidden"
	// Ignored means that an annotation has no effect.
	Ignored = "ignored"
	// Unmatched means that a pattern of the settings matches no tool.
	Unmatched = "unmatched"
)

// Diagnostic describes one problem of a definition and what was done about it.
type Diagnostic struct {
	// Kind is one of the constants above.
	Kind string `json:"kind"`
	// Server is the label, Index the position of the tool in the list of the server, or -1
	// for the list itself, and Tool its name, if it has one.
	Server string `json:"server"`
	Index  int    `json:"index"`
	Tool   string `json:"tool,omitempty"`
	// Field is the field of the definition; empty means the tool as a whole.
	Field string `json:"field,omitempty"`
	// Reason says what is wrong.
	Reason string `json:"reason"`
}

// The severities of a finding.
const (
	// Block holds the tool: only naming it explicitly accepts it.
	Block = "block"
	// Ask shows the finding to the human who accepts the tool.
	Ask = "ask"
	// Info is worth knowing.
	Info = "info"
)

// Finding is a suspicious text in a definition.
type Finding struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	// Rule names the rule that matched, such as "injection_phrase".
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	// Field is the JSON pointer of the text in the tool object, such as "/description".
	Field string `json:"field"`
	// Offset is the byte offset in the text, and Excerpt the text around it, with invisible
	// characters escaped.
	Offset  int    `json:"offset"`
	Excerpt string `json:"excerpt"`
	// Reason explains the rule.
	Reason string `json:"reason"`
}

// Blocked reports whether a finding holds the tool.
func (t *Tool) Blocked() bool {
	for _, f := range t.Findings {
		if f.Severity == Block {
			return true
		}
	}
	return false
}

// Description returns the description of the server, in full.
func (t *Tool) Description() string {
	return jsonwire.Unquote(field(t.Definition, "description"))
}
