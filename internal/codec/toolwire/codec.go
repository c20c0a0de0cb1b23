// Package toolwire is the contract between the tool registry (package interop)
// and the dialects. A dialect implements [Codec]: it reads and writes the tool
// definitions, calls and results of its wire. The registry implements [View]:
// names, arguments, schema lowering and capabilities of one request. The other
// functions are helpers that several codecs share.
package toolwire

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// Codec reads and writes the tool objects of one dialect. Implementations have
// no state and are safe for concurrent use.
//
// A codec may also implement [NamespaceWriter], [ToolMarker], [Recognizer] and
// [Shaper]. A new dialect gets a line in package dialect/all.
type Codec interface {
	// Traits returns the facts about the dialect. The registry does not change them.
	Traits() *Traits

	// ToolFormat returns the format of a tool definition. A definition of an unknown
	// type is hosted: its format is the dialect's name, a dot and the type.
	ToolFormat(obj json.RawMessage) dragoman.Format
	// CallFormat returns the format of a call.
	CallFormat(obj jsonwire.Value) dragoman.Format

	// ReadTool reads a definition of one of the dialect's formats.
	ReadTool(v View, format dragoman.Format, obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error)
	// WriteTool writes a definition under its wire name. It returns false, and
	// writes nothing, if the definition cannot be sent; the report says why.
	WriteTool(v View, w *jsonwire.Writer, format dragoman.Format, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool

	// ReadCall reads a call from the wire, without settling names and ids.
	ReadCall(rd *jsonwire.Reader, c *dragoman.ToolCall) CallReading
	// WriteCall writes a call under its wire id and name.
	WriteCall(v View, w *jsonwire.Writer, format dragoman.Format, c *dragoman.ToolCall, id, name string, at extra.Path, rep *dragoman.Report)

	// ReadResult reads a result from the wire.
	ReadResult(rd *jsonwire.Reader, res *dragoman.ToolResult)
	// WriteResult writes a result under the wire id of its call. It returns the
	// media that the format cannot carry.
	WriteResult(v View, w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) (spill []dragoman.Part)

	// Surfaces returns the schema rules for a function's parameters, without
	// and with the strict flag.
	Surfaces(caps *targets.Capabilities) (loose, strict *schema.Profile)
	// Profiles returns the rules of every surface of the dialect, including those of
	// compatible servers.
	Profiles() []schema.Profile
}

// Traits are the facts about a dialect's tool objects that the registry needs.
// An empty format means that the dialect has no such object.
type Traits struct {
	Dialect dragoman.Dialect

	// Formats of definitions: a function, a freeform tool, a namespace, and an
	// element of the request's list that holds several definitions.
	Function, Freeform, Namespace, ToolList dragoman.Format
	// Formats of calls, with arguments and with text, and of results.
	Call, TextCall, Result dragoman.Format

	// NoHosted: the dialect defines no tools that the provider runs.
	NoHosted bool
	// ClientRun lists prefixes of the formats of provider-defined tools that
	// the client runs.
	ClientRun []string
	// StrictByDefault: a function without a strict flag is strict.
	StrictByDefault bool
	// StrictOptIn: only a target with the capability StrictTools accepts a strict flag.
	StrictOptIn bool
	// StrictLimits limits all strict schemas of a request together.
	StrictLimits StrictLimits
	// OptionalParameters: the vendor accepts a function without parameters. Compatible
	// servers do not (quirk A20).
	OptionalParameters bool
	// CacheInTool: the cache breakpoint of a tool is a field of its definition.
	CacheInTool bool

	// RequiresIDs: a call and its result carry the id of the call.
	RequiresIDs bool

	// OptionalCallFields lists the optional fields that a call of this dialect can have.
	OptionalCallFields CallFields
	// CallFields are the fields that determine what a call runs, by the object that
	// holds them.
	CallFields []Fields
	// ArgumentsPath is the path of the arguments in a call if they are text; nil if
	// they are an object.
	ArgumentsPath []string

	// ResultItemID: a result has an item id.
	ResultItemID bool
	// ResultOutcome: a result includes whether the tool failed.
	ResultOutcome bool
	// ResultFlag: the outcome is a separate field of the result.
	ResultFlag bool
}

// NeedsParameters reports whether a function without parameters must get an empty schema
// for the target.
func (t *Traits) NeedsParameters(s *dragoman.ToolSpec, caps *targets.Capabilities) bool {
	return t.OptionalParameters && caps.NoCustomTools && s.Kind == codes.ToolFunction && s.Parameters == nil && s.Name != ""
}

// OwnsTool reports whether a format is one of the dialect's formats of definitions.
func (t *Traits) OwnsTool(f dragoman.Format) bool {
	return f != "" && (f == t.Function || f == t.Freeform || f == t.Namespace || f == t.ToolList)
}

// OwnsCall reports whether a format is one of the dialect's formats of calls.
func (t *Traits) OwnsCall(f dragoman.Format) bool {
	return f != "" && (f == t.Call || f == t.TextCall)
}

// OwnsResult reports whether a format is the dialect's format of results.
func (t *Traits) OwnsResult(f dragoman.Format) bool { return f != "" && f == t.Result }

// Hosts reports whether a format starts with the name of the dialect: the format of a
// tool that its provider defines.
func (t *Traits) Hosts(f dragoman.Format) bool {
	return len(f) > len(t.Dialect) && string(f[:len(t.Dialect)]) == string(t.Dialect) && f[len(t.Dialect)] == '.'
}

// HostedFormat returns the format of a definition of another type.
func (t *Traits) HostedFormat(typ string) dragoman.Format {
	return dragoman.Format(string(t.Dialect) + "." + typ)
}

// FormatByType returns the format of a tool object by its field "type". A type that is
// not in known is a tool that the provider defines; its format is the dialect's name, a
// dot and the type. An object without a type has the type "".
func (t *Traits) FormatByType(obj jsonwire.Value, known map[string]dragoman.Format) dragoman.Format {
	typ := TypeOfValue(obj)
	if f, ok := known[typ]; ok {
		return f
	}
	return t.HostedFormat(typ)
}

// Fields are the fields, in the object at a path, that determine what a call runs. The
// path "/" is the call itself.
type Fields struct {
	Path  string
	Names []string
}

// StrictLimits limits the strict schemas of a request. Zero means no limit.
type StrictLimits struct{ Tools, Optional, Unions int }

// CallFields lists optional fields of a call.
type CallFields struct{ Cache, Async, ItemID bool }

// View is a codec's view of the registry of one request.
type View interface {
	// Caps are the capabilities of the target.
	Caps() *targets.Capabilities
	// ForClient reports whether calls are written for a client to run, not as history.
	ForClient() bool
	// SetChecked records that the request of the registry passed the checks of an
	// encoder and does not change anymore. Checked reports whether this was recorded
	// for a request.
	SetChecked(req *dragoman.Request)
	Checked(req *dragoman.Request) bool
	// KeepsNamespaces reports whether the wire has namespaces.
	KeepsNamespaces() bool
	// WireName returns the name to write for a tool.
	WireName(namespace, name string) string

	// ArgumentText and ArgumentObject return the arguments of a call for a wire
	// that has them in a string, or as an object.
	ArgumentText(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) string
	ArgumentObject(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) json.RawMessage

	// ReadTool reads a definition inside another one.
	ReadTool(format dragoman.Format, obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error)
	// Expand reads the tools of which only the source is known. A codec needs it if a
	// decision depends on the definitions of all tools. WriteTools expands by itself.
	Expand(tools []dragoman.ToolSpec, rep *dragoman.Report) []dragoman.ToolSpec
	// Lower makes the parameters of a tool valid for the surfaces of a codec. strict is
	// the tool's strict setting, or StrictOff for a wire without a strict flag. It
	// returns false, with a report, if that is not possible.
	Lower(c Codec, s *dragoman.ToolSpec, strict string, at extra.Path, rep *dragoman.Report) (Lowered, bool)
	// Adapt lowers another schema. The result is shared: do not change it.
	Adapt(src json.RawMessage, p schema.Profile) (*schema.Lowered, error)

	// TakeBreakpoint counts a cache breakpoint, for a wire that limits their number. It
	// returns false, with a report, if there are too many.
	TakeBreakpoint(at extra.Path, rep *dragoman.Report) bool
}

// Lowered is a function for one target: its parameters, and its description with
// everything that the parameters cannot express.
type Lowered struct {
	*schema.Lowered
	Description string
	Strict      bool
}

// CallReading describes how a call was read.
type CallReading struct {
	// Sound: the arguments are an object that all readers understand alike.
	Sound bool
	// Trimmed: the wire object has an empty payload that the call does not have.
	Trimmed bool
}

// NamespaceWriter is a codec whose wire has namespaces. The registry writes the
// definitions between the two calls.
type NamespaceWriter interface {
	BeginNamespace(w *jsonwire.Writer, tools []dragoman.ToolSpec)
	EndNamespace(w *jsonwire.Writer, tools []dragoman.ToolSpec)
}

// ToolMarker is a codec whose cache breakpoint is an element of the list of
// tools, after the tool.
type ToolMarker interface {
	MarkTool(v View, w *jsonwire.Writer, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report)
}

// Recognizer is a codec whose calls can be recognized by their shape.
type Recognizer interface {
	// RecognizeCall returns the format of a call, or "".
	RecognizeCall(o *Outline) dragoman.Format
	// RecognizeInner returns the format of a call from the object inside it, or "".
	RecognizeInner(o *Outline) dragoman.Format
}

// Shaper is a codec whose calls and results are also stored with the object
// around them, or without their outer object.
type Shaper interface {
	// CallObject returns a call in the form of its format. An object that has
	// that form, or an unknown one, is returned unchanged.
	CallObject(format dragoman.Format, obj json.RawMessage) CallShape
	// ResultObject does the same for a result. around holds the other fields of
	// the object around it.
	ResultObject(obj json.RawMessage) (object json.RawMessage, around *dragoman.Extra)
}

// CallShape describes the form of a stored call.
type CallShape struct {
	// Object is the call in the form of its format.
	Object json.RawMessage
	// Signature and Around are the other fields of the object around it.
	Signature string
	Around    *dragoman.Extra
	// Inner is set if only the object inside a call was stored.
	Inner bool
}

// Outline lists the fields of an object, by which calls are recognized.
type Outline struct {
	Object json.RawMessage
	// Kinds holds the kind of each field, as [jsonwire.Reader.Kind] names it.
	Kinds map[string]byte
	// Type is the field "type" if it is a string.
	Type string
	// FunctionArguments is the kind of arguments in the object "function".
	FunctionArguments byte
}

// OutlineOf returns the outline of an object, or nil if it is not one.
func OutlineOf(obj json.RawMessage) *Outline {
	rd := jsonwire.NewReader(obj)
	if rd.Kind() != '{' {
		return nil
	}
	o := &Outline{Object: obj, Kinds: map[string]byte{}}
	for key := range rd.Object() {
		k := string(key)
		o.Kinds[k] = byte(rd.Kind())
		switch {
		case k == "type" && rd.Kind() == '"':
			o.Type = rd.String()
		case k == "function" && rd.Kind() == '{':
			for inner := range rd.Object() {
				if string(inner) == "arguments" {
					o.FunctionArguments = byte(rd.Kind())
				}
				rd.Skip()
			}
		default:
			rd.Skip()
		}
	}
	if rd.End() != nil {
		return nil
	}
	return o
}

// Has reports whether the object has a field.
func (o *Outline) Has(field string) bool { _, ok := o.Kinds[field]; return ok }

// Fail adds the format that an object was read as to an error.
func Fail(f dragoman.Format, err error) error { return fmt.Errorf("interop: %s: %w", f, err) }

// DummySignature is a placeholder signature: the Gemini API accepts it in place of a
// signature that it did not make. It is not a loss toward others (quirk B16).
const DummySignature = "skip_thought_signature_validator"
