package interop

import (
	"encoding/json"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ReadTool reads a tool definition of the target's dialect: one tool, or the
// members of a namespace. A definition of a type that is not built in is the
// provider's own tool and kept as it is.
func (r *Registry) ReadTool(obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error) {
	return r.readToolAs(SchemaFormat(r.target.Dialect, obj), obj, at, rep)
}

func (r *Registry) readToolAs(format dragoman.Format, obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error) {
	if a, ok := r.schemas[format]; ok {
		specs, sub, err := a.InspectSchema(obj)
		rep.Merge(at.String(), sub)
		// The source of one tool among several would be all of them.
		if len(specs) == 1 && specs[0].Source == nil {
			s := &specs[0]
			s.Source = &dragoman.ToolSource{Format: format, JSON: obj, Mirror: s.Fingerprint()}
		}
		return specs, err
	}
	rd := jsonwire.NewReader(obj)
	s := dragoman.ToolSpec{Source: &dragoman.ToolSource{Format: format, JSON: obj}}
	switch format {
	case dragoman.FormatChatFunction:
		readChatTool(rd, &s)
	case dragoman.FormatChatCustom:
		s.Kind = dragoman.ToolFreeform
		readChatTool(rd, &s)
	case dragoman.FormatResponsesFunction:
		s.Strict = dragoman.StrictUnset
		readResponsesTool(rd, &s)
	case dragoman.FormatResponsesCustom:
		s.Kind = dragoman.ToolFreeform
		readResponsesTool(rd, &s)
	case dragoman.FormatAnthropicTool:
		readAnthropicTool(rd, &s)
	case dragoman.FormatGeminiFunction:
		readGeminiFunction(rd, &s, at, rep)
	case formatGeminiTool:
		return r.readGeminiTool(rd, at, rep)
	case dragoman.FormatOllamaFunction:
		readOllamaTool(rd, &s)
	case dragoman.FormatMCPTool:
		readMCPTool(rd, &s)
	case dragoman.FormatResponsesNamespace:
		return r.readNamespace(rd, obj, at, rep)
	case dragoman.FormatBedrockTool:
		readBedrockTool(rd, &s)
	default:
		s.Kind = dragoman.ToolHosted
		if hostedBy(format, dragoman.Bedrock) {
			s.Name = bedrockHostedName(rd)
			break
		}
		s.Name = hostedName(rd)
	}
	if err := rd.End(); err != nil {
		return nil, fail(format, err)
	}
	s.Source.Mirror = s.Fingerprint()
	return []dragoman.ToolSpec{s}, nil
}

// hostedName is what a provider calls its own tool.
func hostedName(rd *jsonwire.Reader) string {
	name, typ := "", ""
	for key := range rd.Object() {
		switch {
		case string(key) == "name" && rd.Kind() == '"':
			name = rd.String()
		case string(key) == "type" && rd.Kind() == '"':
			typ = rd.String()
		default:
			rd.Skip()
		}
	}
	if name == "" {
		return typ
	}
	return name
}

// parameters reads a schema; null is the same as none.
func parameters(rd *jsonwire.Reader) json.RawMessage {
	if rd.Null() {
		return nil
	}
	return rd.Raw()
}

func readStrict(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	switch {
	case rd.Null():
	case rd.Bool():
		s.Strict = dragoman.StrictOn
	default:
		s.Strict = dragoman.StrictOff
	}
}

func readChatTool(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	const d = dragoman.OpenAIChat
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "function":
			for key := range rd.Object() {
				switch string(key) {
				case "name":
					s.Name = rd.String()
				case "description":
					s.Description = rd.String()
				case "parameters":
					s.Parameters = parameters(rd)
				case "strict":
					readStrict(rd, s)
				default:
					extra.Add(&s.Extra, d, "/function", key, rd.Raw())
				}
			}
		case "custom":
			for key := range rd.Object() {
				switch string(key) {
				case "name":
					s.Name = rd.String()
				case "description":
					s.Description = rd.String()
				case "format":
					readGrammar(rd, s, d, "/custom/format")
				default:
					extra.Add(&s.Extra, d, "/custom", key, rd.Raw())
				}
			}
		default:
			extra.Add(&s.Extra, d, "", key, rd.Raw())
		}
	}
}

// readGrammar reads the format of a freeform tool: Chat nests the grammar,
// Responses does not. The text format is what no grammar means.
func readGrammar(rd *jsonwire.Reader, s *dragoman.ToolSpec, d dragoman.Dialect, prefix string) {
	if rd.Null() {
		return
	}
	raw := rd.Raw()
	if rd.Err() != nil {
		return
	}
	switch typ := typeOf(raw); typ {
	case "grammar":
	case "", "text":
		return
	default: // a kind of format that we do not know goes back as it came
		at := strings.LastIndexByte(prefix, '/')
		extra.Add(&s.Extra, d, prefix[:at], []byte(prefix[at+1:]), raw)
		return
	}
	in := jsonwire.NewReader(raw)
	g := &dragoman.Grammar{}
	var member func(key []byte, prefix string)
	member = func(key []byte, prefix string) {
		switch string(key) {
		case "type":
			in.Skip()
		case "grammar":
			for key := range in.Object() {
				member(key, prefix+"/grammar")
			}
		case "syntax":
			g.Syntax = in.String()
		case "definition":
			g.Definition = in.String()
		default:
			extra.Add(&s.Extra, d, prefix, key, in.Raw())
		}
	}
	for key := range in.Object() {
		member(key, prefix)
	}
	if err := in.Err(); err != nil {
		rd.Fail(err)
	}
	s.Grammar = g
}

func readResponsesTool(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	const d = dragoman.OpenAIResponses
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "name":
			s.Name = rd.String()
		case "description":
			s.Description = rd.String()
		case "parameters":
			s.Parameters = parameters(rd)
		case "strict":
			readStrict(rd, s)
		case "format":
			readGrammar(rd, s, d, "/format")
		case "defer_loading":
			s.Deferred = rd.Bool()
		case "output_schema":
			s.OutputSchema = parameters(rd)
		default:
			extra.Add(&s.Extra, d, "", key, rd.Raw())
		}
	}
}

func (r *Registry) readNamespace(rd *jsonwire.Reader, obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error) {
	var (
		name, description string
		specs             []dragoman.ToolSpec
		ex                *dragoman.Extra
		failed            error
		nested            bool
	)
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "name":
			name = rd.String()
		case "description":
			description = rd.String()
		case "tools":
			for i := range rd.Array() {
				raw := rd.Raw()
				if rd.Err() != nil {
					break
				}
				format := SchemaFormat(dragoman.OpenAIResponses, raw)
				if format == dragoman.FormatResponsesNamespace {
					// No API has them, and each level would be read again.
					nested = true
					continue
				}
				inner, err := r.readToolAs(format, raw, at.Elem("tools", i), rep)
				if err != nil && failed == nil {
					failed = err
				}
				specs = append(specs, inner...)
			}
		default:
			extra.Add(&ex, dragoman.OpenAIResponses, "", key, rd.Raw())
		}
	}
	if err := rd.End(); err != nil {
		return nil, fail(dragoman.FormatResponsesNamespace, err)
	}
	if failed != nil {
		return nil, failed
	}
	if nested {
		return nil, fmt.Errorf("interop: namespace %.80q holds a namespace, which cannot be in one", name)
	}
	if name == "" || len(specs) == 0 {
		// Nothing we could address: the provider's own, kept as it is.
		s := dragoman.ToolSpec{Kind: dragoman.ToolHosted, Name: name, Source: &dragoman.ToolSource{Format: dragoman.FormatResponsesNamespace, JSON: obj}}
		s.Source.Mirror = s.Fingerprint()
		return []dragoman.ToolSpec{s}, nil
	}
	for i := range specs {
		s := &specs[i]
		if s.Kind == dragoman.ToolHosted {
			return nil, fmt.Errorf("interop: namespace %q holds a %s, which cannot be in one", name, s.Source.Format)
		}
		s.Namespace, s.NamespaceDescription, s.NamespaceExtra = name, description, ex
		s.Source.Mirror = s.Fingerprint()
	}
	return specs, nil
}

func readAnthropicTool(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	const d = dragoman.Anthropic
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "name":
			s.Name = rd.String()
		case "description":
			s.Description = rd.String()
		case "input_schema":
			s.Parameters = parameters(rd)
		case "strict":
			readStrict(rd, s)
		case "defer_loading":
			s.Deferred = rd.Bool()
		case "input_examples":
			for range rd.Array() {
				s.Examples = append(s.Examples, rd.Raw())
			}
		case "cache_control":
			s.Cache = ttl(rd)
		default:
			extra.Add(&s.Extra, d, "", key, rd.Raw())
		}
	}
}

func readMCPTool(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	hint := func() *bool {
		if rd.Null() {
			return nil
		}
		v := rd.Bool()
		return &v
	}
	for key := range rd.Object() {
		switch string(key) {
		case "name":
			s.Name = rd.String()
		case "title":
			s.Annotations.Title = rd.String()
		case "description":
			s.Description = rd.String()
		case "inputSchema":
			s.Parameters = parameters(rd)
		case "outputSchema":
			s.OutputSchema = parameters(rd)
		case "annotations":
			for key := range rd.Object() {
				switch string(key) {
				case "title":
					if t := rd.String(); s.Annotations.Title == "" {
						s.Annotations.Title = t
					}
				case "readOnlyHint":
					s.Annotations.ReadOnly = hint()
				case "destructiveHint":
					s.Annotations.Destructive = hint()
				case "idempotentHint":
					s.Annotations.Idempotent = hint()
				case "openWorldHint":
					s.Annotations.OpenWorld = hint()
				default:
					rd.Skip()
				}
			}
		default:
			rd.Skip() // _meta and the like are between client and server (quirk H14)
		}
	}
}
