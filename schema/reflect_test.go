package schema

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type city struct {
	Name string `json:"name" doc:"the city's name, in English"`
	Zip  string `json:"zip,omitempty" jsonschema:"pattern=^[0-9]{4}$"`
}

type everything struct {
	Zulu    string            `json:"zulu" doc:"first, although last in the alphabet"`
	Count   int               `json:"count" jsonschema:"minimum=1,maximum=9,default=3"`
	Unit    string            `json:"unit,omitempty" jsonschema:"enum=c,enum=f,description=the unit"`
	Rate    *float64          `json:"rate,omitzero" jsonschema:"exclusiveMinimum=0"`
	On      bool              `json:"on" jsonschema:"default=true"`
	Tags    []string          `json:"tags" jsonschema:"minItems=1,uniqueItems=true,maxLength=5"`
	Home    city              `json:"home" doc:"where it is"`
	Other   []city            `json:"other,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	When    time.Time         `json:"when"`
	Wait    time.Duration     `json:"wait"`
	Blob    []byte            `json:"blob"`
	Raw     json.RawMessage   `json:"raw"`
	Any     any               `json:"any"`
	Big     *big.Int          `json:"big"`
	Num     json.Number       `json:"num"`
	Addr    netip.Addr        `json:"addr"`
	Pair    [2]int            `json:"pair"`
	Maybe   *string           `json:"maybe" jsonschema:"nullable"`
	Text    int64             `json:"text,string"`
	Hidden  string            `json:"-"`
	private string
	embedded
}

type embedded struct {
	Inner string `json:"inner"`
}

func TestRequirementT1_SchemaFromAType(t *testing.T) {
	_ = everything{}.private
	got, err := For[everything]()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{` +
		`"zulu":{"type":"string","description":"first, although last in the alphabet"},` +
		`"count":{"type":"integer","maximum":9,"minimum":1,"default":3},` +
		`"unit":{"type":"string","description":"the unit","enum":["c","f"]},` +
		`"rate":{"type":"number","exclusiveMinimum":0},` +
		`"on":{"type":"boolean","default":true},` +
		`"tags":{"type":"array","items":{"type":"string","maxLength":5},"minItems":1,"uniqueItems":true},` +
		`"home":{"$ref":"#/$defs/city","description":"where it is"},` +
		`"other":{"type":"array","items":{"$ref":"#/$defs/city"}},` +
		`"labels":{"type":"object","additionalProperties":{"type":"string"}},` +
		`"when":{"type":"string","format":"date-time"},` +
		`"wait":{"type":"integer"},` +
		`"blob":{"type":"string","contentEncoding":"base64"},` +
		`"raw":{},"any":{},"big":{"type":"integer"},"num":{"type":"number"},"addr":{"type":"string"},` +
		`"pair":{"type":"array","items":{"type":"integer"},"maxItems":2,"minItems":2},` +
		`"maybe":{"oneOf":[{"type":"string"},{"type":"null"}]},` +
		`"text":{"type":"string"},"inner":{"type":"string"}},` +
		`"required":["zulu","count","on","tags","home","when","wait","blob","raw","any","big","num","addr","pair","maybe","text","inner"],` +
		`"additionalProperties":false,` +
		`"$defs":{"city":{"type":"object","properties":{"name":{"type":"string","description":"the city's name, in English"},"zip":{"type":"string","pattern":"^[0-9]{4}$"}},"required":["name"],"additionalProperties":false}}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range 20 {
		if again, _ := For[everything](); string(again) != string(got) {
			t.Fatalf("another schema: %s", again)
		}
	}
	for _, p := range []Profile{OpenAITool(), AnthropicTool()} {
		if out, r, err := lowered(got, p); err != nil || len(r.Losses) > 0 || string(out) != string(got) {
			t.Errorf("%s: %v %v", p.Name(), r, err)
		}
	}
}

// The schema of a type accepts every value that encoding/json encodes for it.
func TestSchemaAcceptsWhatTheTypeEncodes(t *testing.T) {
	s, err := For[everything]()
	if err != nil {
		t.Fatal(err)
	}
	one := 1.0
	text := "x"
	args, err := json.Marshal(everything{
		Count: 2, Tags: []string{"a"}, Home: city{Name: "Oslo", Zip: "0150"}, Other: []city{{Name: "Bergen"}},
		Rate: &one, When: time.Unix(0, 0).UTC(), Blob: []byte("x"), Raw: json.RawMessage(`[1]`), Big: big.NewInt(1), Num: "3", Maybe: &text, Addr: netip.MustParseAddr("::1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled(t, string(s)).Validate(args); err != nil {
		t.Errorf("%s: %v", args, err)
	}
}

type treeNode struct {
	Value string      `json:"value"`
	Kids  []*treeNode `json:"kids,omitempty"`
}

type forest struct {
	First  treeNode `json:"first"`
	Second *leafy   `json:"second,omitempty"`
}

type leafy struct {
	Up   *forest        `json:"up,omitempty"`
	Self map[string]any `json:"self,omitempty"`
}

type namedMap map[string]namedMap

type pair[A, B any] struct {
	A A `json:"a"`
	B B `json:"b"`
}

func TestRecursiveTypesBecomeReferences(t *testing.T) {
	cases := []struct {
		name string
		typ  reflect.Type
		want string
	}{
		{
			"a root that contains itself", reflect.TypeFor[treeNode](),
			`{"type":"object","properties":{"value":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#"}}},"required":["value"],"additionalProperties":false}`,
		},
		{
			"a pointer to it", reflect.TypeFor[*treeNode](),
			`{"type":"object","properties":{"value":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#"}}},"required":["value"],"additionalProperties":false}`,
		},
		{
			"a type that contains one, and a circle", reflect.TypeFor[forest](),
			`{"type":"object","properties":{"first":{"$ref":"#/$defs/treeNode"},"second":{"type":"object","properties":{"up":{"$ref":"#"},"self":{"type":"object"}},"additionalProperties":false}},"required":["first"],"additionalProperties":false,"$defs":{"treeNode":{"type":"object","properties":{"value":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/treeNode"}}},"required":["value"],"additionalProperties":false}}}`,
		},
		{"a map that contains itself", reflect.TypeFor[namedMap](), `{"type":"object","additionalProperties":{"$ref":"#"}}`},
		{"no arguments", reflect.TypeFor[struct{}](), `{"type":"object","properties":{},"additionalProperties":false}`},
		{"a map", reflect.TypeFor[map[string]int](), `{"type":"object","additionalProperties":{"type":"integer"}}`},
		{
			"keys that are signed numbers", reflect.TypeFor[struct{ M map[int8]bool }](),
			`{"type":"object","properties":{"M":{"type":"object","patternProperties":{"^-?[0-9]+$":{"type":"boolean"}},"additionalProperties":false}},"required":["M"],"additionalProperties":false}`,
		},
		{
			"numbers that are read from text", reflect.TypeFor[struct{ M map[slog.Level]bool }](),
			`{"type":"object","properties":{"M":{"type":"object","additionalProperties":{"type":"boolean"}}},"required":["M"],"additionalProperties":false}`,
		},
		{"a generic type", reflect.TypeFor[pair[pair[int, url.Error], string]](), ""},
		{
			"two generic types of one name", reflect.TypeFor[pair[pair[int, int], pair[string, string]]](),
			`{"type":"object","properties":{"a":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false},"b":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"],"additionalProperties":false}},"required":["a","b"],"additionalProperties":false}`,
		},
	}
	for _, c := range cases {
		got, err := FromType(c.typ)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: %s", c.name, got)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

type selfPointer *selfPointer

type selfEmbed struct {
	*selfEmbed //nolint:unused // found by fuzzing
}

type shadow struct {
	embedded
	Inner int `json:"inner"`
}

func TestTypesThatCannotBeArguments(t *testing.T) {
	cases := []struct {
		name string
		typ  reflect.Type
		want string
	}{
		{"nothing", nil, "the type is nil"},
		{"a list", reflect.TypeFor[[]int](), "struct or a map"},
		{"a scalar", reflect.TypeFor[string](), "struct or a map"},
		{"a time", reflect.TypeFor[time.Time](), "struct or a map"},
		{"any", reflect.TypeFor[any](), "struct or a map"},
		{"a map with other keys", reflect.TypeFor[map[int]string](), "struct or a map"},
		{"a channel", reflect.TypeFor[struct{ C chan int }](), "cannot be read"},
		{"a function in a list", reflect.TypeFor[struct{ F []func() }](), "cannot be read"},
		{"a complex number in a map", reflect.TypeFor[struct{ M map[string]complex128 }](), "cannot be read"},
		{"an interface with methods", reflect.TypeFor[struct{ E error }](), "the type to fill"},
		{"keys that are no text", reflect.TypeFor[struct{ M map[bool]int }](), "cannot be a key"},
		{"a URL", reflect.TypeFor[struct{ U *url.URL }](), "use string"},
		{"a pointer to itself", reflect.TypeFor[struct{ P selfPointer }](), "points to itself"},
		{"a type that embeds itself", reflect.TypeFor[selfEmbed](), "embeds itself"},
		{"a name twice", reflect.TypeFor[shadow](), "is taken"},
		{"a tag on a hidden field", reflect.StructOf([]reflect.StructField{{Name: "x", PkgPath: "p", Type: reflect.TypeFor[int](), Tag: `json:"x"`}}), "not exported"},
	}
	for _, c := range cases {
		got, err := FromType(c.typ)
		if err == nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s %v; want %q", c.name, got, err, c.want)
		}
	}
}

func TestTagsAreAppliedOrRefused(t *testing.T) {
	type field struct {
		typ reflect.Type
		tag string
	}
	str, num, list, obj := reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[[]string](), reflect.TypeFor[city]()
	bad := []field{
		{num, `jsonschema:"minimun=1"`},
		{num, `jsonschema:"minimum=x"`},
		{num, `jsonschema:"minimum"`},
		{num, `jsonschema:"minimum="`},
		{num, `jsonschema:"minLength=1"`},
		{num, `jsonschema:"enum=a"`},
		{num, `jsonschema:"default=1.5"`},
		{num, `jsonschema:"multipleOf=0"`},
		{num, `jsonschema:"minimum=1,minimum=2"`},
		{num, `jsonschema:""`},
		{num, `jsonschema:"minimum=1,"`},
		{num, `jsonschema:"required=true"`},
		{str, `jsonschema:"pattern=("`},
		{str, `jsonschema:"maximum=1"`},
		{str, `jsonschema:"minLength=-1"`},
		{str, `jsonschema:"type=integer"`},
		{str, `jsonschema:"oneof_required=a"`},
		{str, `jsonschema:"description=a" doc:"b"`},
		{str, `jsonschema:"just words"`},
		{str, `jsonschema_extras:"a=b"`},
		{str, `json:"-,"`},
		{list, `jsonschema:"minItems=x"`},
		{list, `jsonschema:"minimum=1"`},
		{list, `jsonschema:"uniqueItems=maybe"`},
		{list, `jsonschema:"pattern=a=b"`},
		{obj, `jsonschema:"minLength=1"`},
		{reflect.TypeFor[bool](), `jsonschema:"default=yes"`},
		{reflect.TypeFor[any](), `jsonschema:"enum=a"`},
		{num, `json:"n,string" jsonschema:"minimum=1"`},
	}
	for _, f := range bad {
		typ := reflect.StructOf([]reflect.StructField{{Name: "F", Type: f.typ, Tag: reflect.StructTag(f.tag)}})
		if got, err := FromType(typ); err == nil || !errors.Is(err, ErrInvalid) {
			t.Errorf("%v %s: %s %v", f.typ, f.tag, got, err)
		}
	}
	good := []struct {
		field
		want string
	}{
		{field{str, `jsonschema:"pattern=^a{1\\,2}$,format=zip"`}, `{"type":"string","pattern":"^a{1,2}$","format":"zip"}`},
		{field{str, `jsonschema:"title=T,example=e,default=d"`}, `{"type":"string","title":"T","default":"d","examples":["e"]}`},
		{field{num, `jsonschema:"enum=1,enum=2"`}, `{"type":"integer","enum":[1,2]}`},
		{field{list, `jsonschema:"enum=a,enum=b,maxItems=3"`}, `{"type":"array","items":{"type":"string","enum":["a","b"]},"maxItems":3}`},
		{field{reflect.TypeFor[[]int](), `jsonschema:"minimum=1"`}, `{"type":"array","items":{"type":"integer","minimum":1}}`},
	}
	for _, f := range good {
		typ := reflect.StructOf([]reflect.StructField{{Name: "F", Type: f.typ, Tag: reflect.StructTag(f.tag)}})
		got, err := FromType(typ)
		want := `{"type":"object","properties":{"F":` + f.want + `},"required":["F"],"additionalProperties":false}`
		if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", f.tag, err, diff)
		}
	}
	hidden, err := FromType(reflect.StructOf([]reflect.StructField{{Name: "F", Type: str, Tag: `jsonschema:"-"`}}))
	if err != nil || strings.Contains(string(hidden), "F") {
		t.Errorf("a field that is left out: %s %v", hidden, err)
	}
}

func TestTagTextsAreNotHTMLEscaped(t *testing.T) {
	type in struct {
		F string `json:"f" doc:"a <b> & \\u003c c" jsonschema:"enum=a&b,pattern=<.*>"`
	}
	got, err := For[in]()
	const want = `{"type":"object","properties":{"f":{"type":"string","description":"a <b> & \\u003c c","enum":["a&b"],"pattern":"<.*>"}},"required":["f"],"additionalProperties":false}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s %v\nwant %s", got, err, want)
	}
}

func TestForeignTagsAreAppliedOrRefused(t *testing.T) {
	str, num, list := reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[[]string]()
	of := func(typ reflect.Type, tag string) reflect.Type {
		return reflect.StructOf([]reflect.StructField{{Name: "F", Type: typ, Tag: reflect.StructTag(tag)}})
	}
	for _, f := range []struct {
		typ       reflect.Type
		tag, want string
	}{
		{str, `enum:"a, b"`, `jsonschema:"enum=a,enum=b"`},
		{list, `enums:"a,b"`, `jsonschema:"enum=a,enum=b"`},
		{num, `minimum:"1"`, `jsonschema:"minimum=1"`},
		{num, `minimum:"1" jsonschema:"maximum=9"`, `jsonschema:"minimum=1"`},
		{num, `json:"n,string" minimum:"1"`, "remove it"},
		{str, `minimum:"1"`, "remove it"},
		{str, `description:"the city"`, `doc:"the city"`},
		{str, `desc:"the city"`, `doc:"the city"`},
		{str, `default:"Oslo"`, `jsonschema:"default=Oslo"`},
		{str, `pattern:"a{1,2}"`, `jsonschema:"pattern=a{1\\,2}"`},
		{str, `format:"email"`, `jsonschema:"format=email"`},
		{str, `required:"false"`, "omitempty"},
		{str, `json:"f,omitzero" required:"true"`, "omitempty"},
		{str, `nullable:"true"`, `jsonschema:"nullable"`},
		{list, `minItems:"1"`, `jsonschema:"minItems=1"`},
		{str, `jsonschema:"the city, in English"`, `doc:"the city, in English"`},
	} {
		if got, err := FromType(of(f.typ, f.tag)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), f.want) || !strings.Contains(err.Error(), ".F") {
			t.Errorf("%s: %s %v, want %s", f.tag, got, err, f.want)
		}
	}
	for _, f := range []struct {
		typ       reflect.Type
		tag, same string // the schema is the same as for
	}{
		{str, `validate:"required,oneof=a b" binding:"required" example:"a" yaml:"f" env:"F"`, ``},
		{str, `enum:"a,b" jsonschema:"enum=a,enum=b"`, `jsonschema:"enum=a,enum=b"`},
		{str, `description:"x" doc:"x"`, `doc:"x"`},
		{str, `description:"x" jsonschema_description:"x"`, `jsonschema_description:"x"`},
		{str, `required:"true"`, ``},
		{str, `json:",omitempty" required:"false"`, `json:",omitempty"`},
		{str, `nullable:"false" enum:""`, ``},
		{num, `format:"int64"`, ``},
		{reflect.TypeFor[*time.Time](), `format:"date-time"`, ``},
		{str, `json:"-" enum:"a,b"`, `json:"-"`},
		{str, `jsonschema:"-" enum:"a,b"`, `jsonschema:"-"`},
	} {
		got, err := FromType(of(f.typ, f.tag))
		want, werr := FromType(of(f.typ, f.same))
		if err != nil || werr != nil || string(got) != string(want) {
			t.Errorf("%s: %s %v, want %s %v", f.tag, got, err, want, werr)
		}
	}
}
