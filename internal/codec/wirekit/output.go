package wirekit

import (
	"encoding/json"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// OutputInWords returns the request to write for a target that does not accept its
// output format: not together with tools or in a conversation that used tools (quirks
// F1, F8, F9), or only JSON without a schema. It moves the format into the
// instructions, where nothing enforces it. Any other request is returned unchanged.
func OutputInWords(req *dragoman.Request, caps targets.Capabilities, rep *dragoman.Report) *dragoman.Request {
	f := req.Output
	if f == nil || f.Kind == codes.OutputText || caps.NoStructuredOutput {
		return req
	}
	out := *req
	switch {
	case Refuses(req, &caps, "response_format"):
		rep.Add(dragoman.Lowered, dragoman.Warn, "/output", "the model accepts no output format"+whileReasoning(&caps, "response_format")+"; the instructions ask for it, without enforcement")
		out.Output = nil
	case caps.NoOutputWithTools && (len(req.Tools) > 0 || usesTools(req)):
		rep.Add(dragoman.Lowered, dragoman.Warn, "/output", "the model accepts no output format together with tools; the instructions ask for it, without enforcement")
		out.Output = nil
	case caps.NoOutputSchemaStreamed && req.Stream && len(f.Schema) > 0:
		rep.Add(dragoman.Lowered, dragoman.Warn, "/output", "the server accepts no output schema when streaming; the instructions ask for it, without enforcement")
		out.Output = nil
	case caps.NoOutputSchema && len(f.Schema) > 0:
		rep.Add(dragoman.Lowered, dragoman.Warn, "/output/schema", "the server accepts JSON output but no schema; the instructions ask for the schema, without enforcement")
		out.Output = bareJSON(f)
	default:
		return req
	}
	words := "The final answer must be JSON and nothing else, with no text and no code fence around it."
	if len(f.Schema) > 0 {
		words += " It must be valid against this JSON Schema:\n" + string(f.Schema)
	}
	out.Instructions = append(slices.Clone(req.Instructions), &dragoman.Text{Text: words})
	return &out
}

// bareJSON returns an output format without its schema. It returns nil if the root of
// the schema is not an object, because servers mean an object by JSON.
func bareJSON(f *dragoman.OutputFormat) *dragoman.OutputFormat {
	if _, wrapped, err := schema.Wrap(f.Schema); err != nil || wrapped {
		return nil
	}
	return &dragoman.OutputFormat{Kind: codes.OutputJSON}
}

// usesTools reports whether the conversation has tool calls or results.
func usesTools(req *dragoman.Request) bool {
	return slices.ContainsFunc(req.Messages, func(m dragoman.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool {
			switch p.(type) {
			case *dragoman.ToolCall, *dragoman.ToolResult:
				return true
			default:
				return false
			}
		})
	})
}

// OutputSchema lowers the schema of a response to the profile, for APIs that require an
// object at the root. Any other root is wrapped in a property of an object, and the
// registry records that (quirk F6). Paths in the report refer to the original schema.
func OutputSchema(src json.RawMessage, p schema.Profile, reg *interop.Registry, rep *dragoman.Report) ([]byte, error) {
	object, wrapped, err := schema.Wrap(src)
	if err != nil {
		object, wrapped = src, false // Lower reports the error
	}
	low, err := schema.Lower(object, p.ForOutput())
	if err != nil {
		return nil, err
	}
	if wrapped {
		rep.Add(dragoman.Lowered, dragoman.Warn, "/output/schema", `the API requires an object at the root; the response will be in its property "value"`)
		unwrapPlaces(low.Report.Losses)
	}
	reg.WrapOutput(wrapped)
	rep.Merge("/output/schema", low.Report)
	return low.Schema, nil
}

// unwrapPlaces makes the paths of losses in a wrapped schema refer to the original one.
func unwrapPlaces(losses []dragoman.Loss) {
	const under = "/properties/value"
	for i := range losses {
		if rest, ok := strings.CutPrefix(losses[i].Path, under); ok && (rest == "" || rest[0] == '/') {
			losses[i].Path = rest
		}
	}
}

// OpenAIOutput returns the schema of a response for the OpenAI dialects, and whether it
// is strict. A schema that came in the same dialect d is returned unchanged.
func OpenAIOutput(f *dragoman.OutputFormat, d dragoman.Dialect, reg *interop.Registry, rep *dragoman.Report) (out []byte, strict bool) {
	strict = f.Strict == codes.StrictOn || f.Strict == codes.StrictAuto && fitsStrict(f.Schema)
	if f.Dialect == d {
		return f.Schema, strict
	}
	if strict {
		low, err := OutputSchema(f.Schema, toolwire.OpenAIStrict, reg, rep)
		if err == nil {
			return low, true
		}
		rep.Addf(dragoman.Lowered, dragoman.Warn, "/output/strict", "not strict: %v", err)
	}
	low, err := OutputSchema(f.Schema, toolwire.OpenAIOutput, reg, rep)
	if err != nil {
		rep.Addf(dragoman.Lowered, dragoman.Serious, "/output/schema", "sent unchanged: %v", err)
		return f.Schema, false
	}
	return low, false
}

// fitsStrict reports whether a schema can be strict without changes, apart from
// wrapping its root.
func fitsStrict(src json.RawMessage) bool {
	object, _, err := schema.Wrap(src)
	return err == nil && toolwire.OpenAIStrict.Fits(object)
}
