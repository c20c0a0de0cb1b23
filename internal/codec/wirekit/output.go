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

// OutputInWords returns the request to write where the target takes no output
// format beside tools, nor in a conversation that used some (quirks F1, F8, F9), or
// takes JSON and no schema of it: what it does not take is asked for in the
// instructions, and nothing holds the answer to it. Any other request is returned
// as it is.
func OutputInWords(req *dragoman.Request, caps targets.Capabilities, rep *dragoman.Report) *dragoman.Request {
	f := req.Output
	if f == nil || f.Kind == codes.OutputText || caps.NoStructuredOutput {
		return req
	}
	told := *req
	switch {
	case Refuses(req, &caps, "response_format"):
		rep.Add(dragoman.Lowered, dragoman.Warn, "/output", "the model takes no output format"+whileReasoning(&caps, "response_format")+"; it is asked for in the instructions, which nothing enforces")
		told.Output = nil
	case caps.NoOutputWithTools && (len(req.Tools) > 0 || usesTools(req)):
		rep.Add(dragoman.Lowered, dragoman.Warn, "/output", "the model takes no output format beside tools; it is asked for in the instructions, which nothing enforces")
		told.Output = nil
	case caps.NoOutputSchemaStreamed && req.Stream && len(f.Schema) > 0:
		rep.Add(dragoman.Lowered, dragoman.Warn, "/output", "the server takes no output schema in a stream; it is asked for in the instructions, which nothing enforces")
		told.Output = nil
	case caps.NoOutputSchema && len(f.Schema) > 0:
		rep.Add(dragoman.Lowered, dragoman.Warn, "/output/schema", "the server takes JSON, but no schema of it; that is asked for in the instructions, which nothing enforces")
		told.Output = bareJSON(f)
	default:
		return req
	}
	words := "The final answer must be JSON and nothing else, with no text and no code fence around it."
	if len(f.Schema) > 0 {
		words += " It must be valid against this JSON Schema:\n" + string(f.Schema)
	}
	told.Instructions = append(slices.Clone(req.Instructions), &dragoman.Text{Text: words})
	return &told
}

// bareJSON is an output format without its schema; nil where the root of that is
// no object, which is all that servers mean by JSON.
func bareJSON(f *dragoman.OutputFormat) *dragoman.OutputFormat {
	if _, wrapped, err := schema.Wrap(f.Schema); err != nil || wrapped {
		return nil
	}
	return &dragoman.OutputFormat{Kind: codes.OutputJSON}
}

// usesTools reports whether calls or results stand in the conversation.
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

// AnswerSchema returns the schema of an answer as the profile takes it, for APIs
// that want an object at its root: any other root is put under a property of
// one, and the registry remembers it (quirk F6). Places in the report are those
// of the author's schema.
func AnswerSchema(src json.RawMessage, p schema.Profile, reg *interop.Registry, rep *dragoman.Report) ([]byte, error) {
	object, wrapped, err := schema.Wrap(src)
	if err != nil {
		object, wrapped = src, false // what is wrong with it is told below
	}
	low, err := schema.Lower(object, p.ForAnswers())
	if err != nil {
		return nil, err
	}
	if wrapped {
		rep.Add(dragoman.Lowered, dragoman.Warn, "/output/schema", `the API wants an object at the root; the answer will stand in its property "value"`)
		unwrapPlaces(low.Report.Losses)
	}
	reg.WrapAnswer(wrapped)
	rep.Merge("/output/schema", low.Report)
	return low.Schema, nil
}

// unwrapPlaces makes losses of a schema that was wrapped tell of places in the
// one that was not.
func unwrapPlaces(losses []dragoman.Loss) {
	const under = "/properties/value"
	for i := range losses {
		if rest, ok := strings.CutPrefix(losses[i].Path, under); ok && (rest == "" || rest[0] == '/') {
			losses[i].Path = rest
		}
	}
}

// OpenAIOutput is the schema of an answer for OpenAI's two wires, and whether
// the answer is held to it. One that came in the same dialect d passes as it is.
func OpenAIOutput(f *dragoman.OutputFormat, d dragoman.Dialect, reg *interop.Registry, rep *dragoman.Report) (out []byte, strict bool) {
	strict = f.Strict == codes.StrictOn || f.Strict == codes.StrictAuto && fitsStrict(f.Schema)
	if f.Dialect == d {
		return f.Schema, strict
	}
	if strict {
		low, err := AnswerSchema(f.Schema, toolwire.OpenAIStrict, reg, rep)
		if err == nil {
			return low, true
		}
		rep.Addf(dragoman.Lowered, dragoman.Warn, "/output/strict", "not strict: %v", err)
	}
	low, err := AnswerSchema(f.Schema, toolwire.OpenAIOutput, reg, rep)
	if err != nil {
		rep.Addf(dragoman.Lowered, dragoman.Serious, "/output/schema", "sent as it is: %v", err)
		return f.Schema, false
	}
	return low, false
}

// fitsStrict reports whether a schema needs no change for strict, but that its
// root may have to be wrapped.
func fitsStrict(src json.RawMessage) bool {
	object, _, err := schema.Wrap(src)
	return err == nil && toolwire.OpenAIStrict.Fits(object)
}
