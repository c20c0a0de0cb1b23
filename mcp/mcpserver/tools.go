package mcpserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/tool"
)

// catalog is a toolbox with the names and definitions for MCP.
type catalog struct {
	box    *tool.Box
	list   []*definition
	byName map[string]*definition
}

// definition is one tool as MCP clients see it.
type definition struct {
	name string
	key  tool.Key
	spec *dragoman.ToolSpec
	// input is the input schema. structured reports that results conform to the output schema.
	input      json.RawMessage
	structured bool
	// remote reports that another MCP server has the tool: its listings and results are sent
	// with the bytes of that server. lowered reports that legacy has no output schema, although modern has one.
	remote, lowered bool
	// modern and legacy are the wire objects for 2026-07-28 and for older revisions.
	modern, legacy json.RawMessage
}

func newCatalog(box *tool.Box, o *Options) (*catalog, error) {
	c := &catalog{box: box, byName: map[string]*definition{}}
	tools := box.Tools()
	names := wireNames(tools)
	if o.ToolName != nil {
		for i, t := range tools {
			if name := o.ToolName(t.Spec()); name != "" {
				names[i] = name
			}
		}
	}
	var wrong []error
	for i, t := range tools {
		d, err := define(names[i], t)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if src := d.spec.Source; src != nil && src.Format == formatTool && isForwarded(t) && fieldsOf(src.JSON) != nil {
			d.forward(src.JSON, o.Unfenced)
		}
		if c.byName[d.name] != nil {
			wrong = append(wrong, fmt.Errorf("mcpserver: two tools have the name %q", d.name))
			continue
		}
		c.list = append(c.list, d)
		c.byName[d.name] = d
	}
	return c, errors.Join(wrong...)
}

const maxName = 64

// wireNames returns the names of tools for clients, in order: the name itself, or
// "namespace__name". A name that most models refuse, or that two tools want, gets a hash of
// the tool's identity. The name of a tool without a namespace wins.
func wireNames(tools []tool.Tool) []string {
	wanted, bare := map[string]int{}, map[string]bool{}
	natural := make([]string, len(tools))
	for i, t := range tools {
		s := t.Spec()
		natural[i] = s.Name
		if s.Namespace != "" {
			natural[i] = s.Namespace + "__" + s.Name
		} else {
			bare[natural[i]] = true
		}
		wanted[natural[i]]++
	}
	out := make([]string, len(tools))
	for i, t := range tools {
		s, name := t.Spec(), natural[i]
		taken := s.Namespace != "" && (bare[name] || wanted[name] > 1)
		if out[i] = name; taken || !legalName(name) {
			out[i] = hashedName(name, s.Namespace+"\x00"+s.Name)
		}
	}
	return out
}

func legalName(name string) bool {
	return name != "" && len(name) <= maxName && strings.IndexFunc(name, illegal) < 0
}

func illegal(r rune) bool {
	return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

func hashedName(name, identity string) string {
	sum := sha256.Sum256([]byte(identity))
	suffix := "_" + hex.EncodeToString(sum[:4])
	clean := strings.Map(func(r rune) rune {
		if illegal(r) {
			return '_'
		}
		return r
	}, name)
	return clean[:min(len(clean), maxName-len(suffix))] + suffix
}

var (
	noArguments   = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	freeformInput = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)
)

func define(name string, t tool.Tool) (*definition, error) {
	spec := t.Spec()
	d := &definition{name: name, key: tool.KeyOf(spec), spec: spec}
	description := spec.Description
	switch {
	case spec.Kind == codes.ToolHosted:
		return nil, fmt.Errorf("mcpserver: the tool %q cannot be served: a provider runs it", spec.QualifiedName())
	case spec.Kind == codes.ToolFreeform:
		d.input = freeformInput
		if g := spec.Grammar; g != nil && g.Definition != "" {
			description = strings.TrimSpace(description + "\n\nThe input must match this grammar (" + g.Syntax + "):\n" + g.Definition)
		}
	case spec.Parameters == nil:
		d.input = noArguments
	default:
		input, err := objectSchema(spec.Parameters)
		if err != nil {
			return nil, fmt.Errorf("mcpserver: the tool %q cannot be served: %w", spec.QualifiedName(), err)
		}
		d.input = input
	}
	if s, ok := t.(interface{ Settings() tool.Settings }); ok && spec.OutputSchema != nil {
		d.structured = s.Settings().Structured
	}
	d.modern = d.object(description, true)
	d.legacy = d.object(description, false)
	return d, nil
}

// objectSchema returns a schema whose root has the type "object", as the protocol demands. It
// changes nothing else.
func objectSchema(schema json.RawMessage) (json.RawMessage, error) {
	var root map[string]json.RawMessage
	if err := json.Unmarshal(schema, &root); err != nil || root == nil {
		return nil, errors.New("its schema is not an object")
	}
	switch typ := root["type"]; {
	case typ == nil:
		trimmed := bytes.TrimSpace(schema)
		rest := bytes.TrimSpace(trimmed[1:])
		if bytes.Equal(rest, []byte("}")) {
			return json.RawMessage(`{"type":"object"}`), nil
		}
		return append([]byte(`{"type":"object",`), rest...), nil
	case string(typ) != `"object"`:
		return nil, fmt.Errorf("its schema has the type %s, but arguments are an object", typ)
	}
	return schema, nil
}

// object returns the wire object of the tool. All hints are written, because clients read an
// absent hint as dangerous (pitfall K32).
func (d *definition) object(description string, modern bool) json.RawMessage {
	a := d.spec.Annotations
	w := jsonwire.Writer{}
	w.BeginObject()
	w.StringField("name", d.name)
	if a.Title != "" {
		w.StringField("title", a.Title)
	}
	if description != "" {
		w.StringField("description", description)
	}
	w.RawField("inputSchema", d.input)
	if d.structured && (modern || isObjectSchema(d.spec.OutputSchema)) {
		w.RawField("outputSchema", d.spec.OutputSchema)
	}
	w.Key("annotations")
	w.BeginObject()
	if a.Title != "" {
		w.StringField("title", a.Title)
	}
	readOnly := hint(a.ReadOnly, false)
	w.BoolField("readOnlyHint", readOnly)
	w.BoolField("destructiveHint", hint(a.Destructive, !readOnly))
	w.BoolField("idempotentHint", hint(a.Idempotent, false))
	w.BoolField("openWorldHint", hint(a.OpenWorld, true))
	w.EndObject()
	// A tool of another MCP server keeps its icons and the metadata of MCP Apps.
	if src := d.spec.Source; src != nil && src.Format == "mcp.tool" {
		var raw map[string]json.RawMessage
		if json.Unmarshal(src.JSON, &raw) == nil {
			for _, name := range []string{"icons", "_meta"} {
				if v := raw[name]; v != nil {
					w.RawField(name, v)
				}
			}
		}
	}
	w.EndObject()
	return w.Buf
}

func hint(v *bool, otherwise bool) bool {
	if v == nil {
		return otherwise
	}
	return *v
}

func isObjectSchema(schema json.RawMessage) bool {
	var root struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(schema, &root) == nil && root.Type == "object"
}

// page returns the elements of a list that a cursor selects, and the next cursor.
func page[T any](list []T, cursor string, size int) (elements []T, next string, err error) {
	from := 0
	if cursor != "" {
		raw, err := base64.RawURLEncoding.DecodeString(cursor)
		if err == nil {
			from, err = strconv.Atoi(string(raw))
		}
		if err != nil || from <= 0 || from > len(list) {
			return nil, "", invalidParams("the cursor is not one of this list: list again from the beginning")
		}
	}
	to := min(from+size, len(list))
	if to < len(list) {
		next = base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(to)))
	}
	return list[from:to], next, nil
}
