package dialect_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// samples are values for the canonical request fields that need a certain value. Other fields get
// a value according to their type, so a new field is checked without a new line here.
var samples = map[string]any{
	"/instructions":        []dragoman.Part{&dragoman.Text{Text: "Be brief."}},
	"/messages":            []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "Hello."}}}},
	"/tools":               []dragoman.ToolSpec{{Name: "other"}},
	"/tool_choice":         &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired},
	"/parallel_tool_calls": new(false),
	"/output":              &dragoman.OutputFormat{Kind: codes.OutputSchema, Schema: json.RawMessage(`{"type":"object"}`)},
	"/reasoning/mode":      codes.ReasoningAdaptive,
	"/cache":               &dragoman.CacheHint{},
	"/metadata":            []dragoman.KeyValue{{Key: "k", Value: "v"}},
	"/service_tier":        "flex",
}

// impliedFields are canonical fields that a dialect neither writes nor loses, with the reason. An
// empty dialect means all dialects.
var impliedFields = map[string]map[dragoman.Dialect]string{
	"/reasoning/encrypted": {
		dialectname.Anthropic: "thinking is always signed",
		dialectname.Bedrock:   "thinking is always signed",
		dialectname.Gemini:    "thoughts are always signed",
	},
	"/stream_usage": {"": "every dialect but Chat always sends usage"},
}

// Every dialect writes every canonical request field, reports its loss, or refuses the request.
func TestEveryRequestFieldIsWrittenOrLost(t *testing.T) {
	for _, c := range crosstest.Codecs {
		encode := func(req dragoman.Request) (dialect.Encoded, error) {
			return c.EncodeRequest(&req, dialect.EncodeOptions{})
		}
		request := func() dragoman.Request {
			return dragoman.Request{
				Model:    "m",
				Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "q"}}}},
				Tools:    []dragoman.ToolSpec{{Name: "f"}},
			}
		}
		plain, err := encode(request())
		if err != nil {
			t.Fatal(err)
		}
		eachField(t, reflect.TypeFor[dragoman.Request](), "", func(path string, set func(reflect.Value)) {
			req := request()
			set(reflect.ValueOf(&req).Elem())
			enc, err := encode(req)
			reasons := impliedFields[path]
			implied := reasons[""] + reasons[c.Dialect()]
			if err == nil && implied == "" && bytes.Equal(enc.Body, plain.Body) && len(crosstest.LossesAt(enc.Report, path)) == 0 {
				t.Errorf("%s neither writes nor loses %s: add a line to dialect/%s/settings.go", c.Dialect(), path, reflect.TypeOf(c).PkgPath()[strings.LastIndexByte(reflect.TypeOf(c).PkgPath(), '/')+1:])
			}
		})
	}
}

// eachField calls field for each field of a request, with its JSON pointer and a function that
// sets it.
func eachField(t *testing.T, typ reflect.Type, prefix string, field func(path string, set func(reflect.Value))) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path := prefix + "/" + tag
		switch {
		case tag == "-", tag == "native", tag == "extra":
		case f.Type == reflect.TypeFor[dragoman.Sampling]():
			eachField(t, f.Type, path, func(path string, set func(reflect.Value)) {
				field(path, func(v reflect.Value) { set(v.Field(i)) })
			})
		case f.Type == reflect.TypeFor[*dragoman.ReasoningSettings]():
			eachField(t, f.Type.Elem(), path, func(path string, set func(reflect.Value)) {
				field(path, func(v reflect.Value) {
					v.Field(i).Set(reflect.New(f.Type.Elem()))
					set(v.Field(i).Elem())
				})
			})
		default:
			field(path, func(v reflect.Value) { v.Field(i).Set(sampleOf(t, path, f.Type)) })
		}
	}
}

func sampleOf(t *testing.T, path string, typ reflect.Type) reflect.Value {
	if v, ok := samples[path]; ok {
		return reflect.ValueOf(v)
	}
	switch reflect.Zero(typ).Interface().(type) {
	case string:
		return reflect.ValueOf("low")
	case bool:
		return reflect.ValueOf(true)
	case *bool:
		return reflect.ValueOf(new(true))
	case *int64:
		return reflect.ValueOf(new(int64(2)))
	case *dragoman.Number:
		return reflect.ValueOf(dragoman.Num(0.5))
	case []string:
		return reflect.ValueOf([]string{"low"})
	default:
		t.Fatalf("no sample for %s of type %s: add one to samples", path, typ)
		return reflect.Value{}
	}
}
