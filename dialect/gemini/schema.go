package gemini

import (
	"encoding/json"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/go-json-experiment/json/jsontext"
)

// maxSchemaDepth is the depth to which a closed schema is converted. Deeper
// levels stay unchanged.
const maxSchemaDepth = 64

// fromClosedSchema converts a schema of the closed subset to JSON Schema:
// type names in lower case, nullable as a type, quoted numbers as numbers,
// numeric types as names (quirks A9, A10, A21). It returns src unchanged if
// that is already JSON Schema or not a schema. An unknown type is omitted and
// reported once, at the path of the schema. rep may be nil.
func fromClosedSchema(src json.RawMessage, at string, rep *dragoman.Report) json.RawMessage {
	t := closedSchema{at: at, rep: rep}
	t.schema(src, 0)
	if !t.changed || t.w.Err() != nil {
		return src
	}
	return t.w.Buf
}

// closedSchema converts one schema.
type closedSchema struct {
	w            jsonwire.Writer
	changed      bool
	at           string
	rep          *dragoman.Report
	reportedType bool // an unknown type was reported
}

// keyword is a keyword and its value.
type keyword struct {
	key string
	raw []byte
}

func (t *closedSchema) schema(raw []byte, depth int) {
	rd := jsonwire.NewReader(raw)
	if depth > maxSchemaDepth || rd.Kind() != '{' {
		t.w.Raw(raw)
		return
	}
	var keywords []keyword
	typ, nullable := "", false
	choice := false
	for key := range rd.Object() {
		m := keyword{string(jsonwire.Camel(key)), nil}
		t.changed = t.changed || m.key != string(key)
		m.raw = rd.Raw()
		switch m.key {
		case "type":
			typ = t.typeName(m.raw)
		case "nullable":
			nullable = string(m.raw) == "true"
		case "anyOf":
			choice = true
		}
		keywords = append(keywords, m)
	}
	t.w.BeginObject()
	for _, m := range keywords {
		if m.key == "$ref" && nullable {
			t.nullableRef(m.raw, choice)
			continue
		}
		t.keyword(m, typ, nullable, depth)
	}
	t.w.EndObject()
}

// nullableRef writes a reference that may be null. $ref cannot have a type next
// to it, so it becomes an anyOf. If the schema already has an anyOf, null is
// dropped.
func (t *closedSchema) nullableRef(ref []byte, choice bool) {
	w := &t.w
	t.changed = true
	if choice {
		t.rep.Add(dragoman.Dropped, dragoman.Warn, t.at, "null next to a $ref and an anyOf")
		w.RawField("$ref", ref)
		return
	}
	w.Key("anyOf")
	w.BeginArray()
	w.BeginObject()
	w.RawField("$ref", ref)
	w.EndObject()
	w.BeginObject()
	w.StringField("type", "null")
	w.EndObject()
	w.EndArray()
}

func (t *closedSchema) keyword(m keyword, typ string, nullable bool, depth int) {
	w := &t.w
	switch m.key {
	case "nullable":
		t.changed = true
	case "type":
		t.typ(m, typ, nullable)
	case "format":
		if jsonwire.Unquote(m.raw) == "enum" { // redundant: enum lists the values
			t.changed = true
			return
		}
		w.RawField(m.key, m.raw)
	case "enum":
		w.Key(m.key)
		t.enum(m.raw, typ, nullable)
	case "example":
		t.changed = true
		w.Key("examples")
		w.BeginArray()
		w.Raw(m.raw)
		w.EndArray()
	case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minimum", "maximum":
		w.Key(m.key)
		w.Raw(t.number(m.raw))
	case "items":
		w.Key(m.key)
		t.schema(m.raw, depth+1)
	case "properties":
		w.Key(m.key)
		t.properties(m.raw, depth)
	case "anyOf":
		w.Key(m.key)
		t.anyOf(m.raw, nullable, depth)
	default:
		w.QuotedKey(m.key)
		w.Raw(m.raw)
	}
}

// schemaTypes returns the type names, indexed by the numbers that protobuf JSON
// may use instead.
func schemaTypes() []string {
	return []string{unspecified, "string", "number", "integer", "boolean", "array", "object", "null"}
}

// unspecified is the type name for "no type".
const unspecified = "type_unspecified"

// typeName returns the name of a type; empty if raw is neither a string nor a
// number.
func (t *closedSchema) typeName(raw []byte) string {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return strings.ToLower(jsonwire.Unquote(raw))
	}
	types := schemaTypes()
	if n, err := strconv.Atoi(string(raw)); err == nil && n >= 0 && n < len(types) {
		return types[n]
	}
	if !t.reportedType {
		t.reportedType = true
		t.rep.Addf(dragoman.Dropped, dragoman.Warn, t.at, "unknown numeric type %.20s", raw)
	}
	return unspecified
}

func (t *closedSchema) typ(m keyword, typ string, nullable bool) {
	w := &t.w
	switch {
	case typ == "" || typ == unspecified:
		if typ != "" {
			t.changed = true
			return
		}
		w.RawField(m.key, m.raw)
	case nullable && typ != "null":
		t.changed = true
		w.Key(m.key)
		w.BeginArray()
		w.String(typ)
		w.String("null")
		w.EndArray()
	default:
		t.changed = t.changed || typ != jsonwire.Unquote(m.raw)
		w.StringField(m.key, typ)
	}
}

// enum writes the allowed values. The wire quotes the values of a numeric type.
func (t *closedSchema) enum(raw []byte, typ string, nullable bool) {
	rd := jsonwire.NewReader(raw)
	if rd.Kind() != '[' {
		t.w.Raw(raw)
		return
	}
	numeric, hasNull := typ == "integer" || typ == "number", false
	t.w.BeginArray()
	for range rd.Array() {
		v := rd.Raw()
		hasNull = hasNull || string(v) == "null"
		if numeric {
			v = t.number(v)
		}
		t.w.Raw(v)
	}
	if nullable && !hasNull {
		t.w.Null()
	}
	t.w.EndArray()
}

func (t *closedSchema) properties(raw []byte, depth int) {
	rd := jsonwire.NewReader(raw)
	if rd.Kind() != '{' {
		t.w.Raw(raw)
		return
	}
	t.w.BeginObject()
	for key := range rd.Object() {
		t.w.QuotedKey(string(key))
		t.schema(rd.Raw(), depth+1)
	}
	t.w.EndObject()
}

func (t *closedSchema) anyOf(raw []byte, nullable bool, depth int) {
	rd := jsonwire.NewReader(raw)
	if rd.Kind() != '[' {
		t.w.Raw(raw)
		return
	}
	t.w.BeginArray()
	for range rd.Array() {
		t.schema(rd.Raw(), depth+1)
	}
	if nullable {
		t.w.BeginObject()
		t.w.StringField("type", "null")
		t.w.EndObject()
	}
	t.w.EndArray()
}

// number unquotes a number that protobuf JSON wrote as a string, as it does for
// int64.
func (t *closedSchema) number(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '"' {
		return raw
	}
	s := jsonwire.Unquote(raw)
	if v := jsontext.Value(s); s == "" || v.Kind() != '0' || !v.IsValid() || strings.TrimSpace(s) != s {
		return raw
	}
	t.changed = true
	return []byte(s)
}
