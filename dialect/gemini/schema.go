package gemini

import (
	"encoding/json"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/go-json-experiment/json/jsontext"
)

// maxSchemaDepth is how deep a closed schema is read; below it stays as it is.
const maxSchemaDepth = 64

// fromClosedSchema writes a schema of Gemini's closed subset as the JSON Schema
// it means: types in small letters, nullable as a type, numbers as numbers, the
// numbers of types as their names (quirks A9, A10, A21). A schema that is JSON
// Schema already is returned as it is; so is what is no schema. A type that is
// none is left out and reported once, at the place of the schema; rep may be
// nil.
func fromClosedSchema(src json.RawMessage, at string, rep *dragoman.Report) json.RawMessage {
	t := closedSchema{at: at, rep: rep}
	t.schema(src, 0)
	if !t.changed || t.w.Err() != nil {
		return src
	}
	return t.w.Buf
}

// closedSchema translates one schema.
type closedSchema struct {
	w       jsonwire.Writer
	changed bool
	at      string
	rep     *dragoman.Report
	strange bool // it was reported that a type is none
}

// member is a keyword and its value.
type member struct {
	key string
	raw []byte
}

func (t *closedSchema) schema(raw []byte, depth int) {
	rd := jsonwire.NewReader(raw)
	if depth > maxSchemaDepth || rd.Kind() != '{' {
		t.w.Raw(raw)
		return
	}
	var members []member
	typ, nullable := "", false
	choice := false
	for key := range rd.Object() {
		m := member{string(jsonwire.Camel(key)), nil}
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
		members = append(members, m)
	}
	t.w.BeginObject()
	for _, m := range members {
		if m.key == "$ref" && nullable {
			t.nullableRef(m.raw, choice)
			continue
		}
		t.member(m, typ, nullable, depth)
	}
	t.w.EndObject()
}

// nullableRef writes a reference beside which null is allowed: a type of its own
// has no place there. Beside a choice there is no room for another.
func (t *closedSchema) nullableRef(ref []byte, choice bool) {
	w := &t.w
	t.changed = true
	if choice {
		t.rep.Add(dragoman.Dropped, dragoman.Warn, t.at, "null beside a reference and a choice")
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

func (t *closedSchema) member(m member, typ string, nullable bool, depth int) {
	w := &t.w
	switch m.key {
	case "nullable":
		t.changed = true
	case "type":
		t.typ(m, typ, nullable)
	case "format":
		if jsonwire.Unquote(m.raw) == "enum" { // says what the list of values says
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

// schemaTypes are the names of types, by the numbers that the JSON of protocol
// buffers may have in place of them.
func schemaTypes() []string {
	return []string{unspecified, "string", "number", "integer", "boolean", "array", "object", "null"}
}

// unspecified is the type of what has none.
const unspecified = "type_unspecified"

// typeName is the name of a type; empty where it is no word and no number.
func (t *closedSchema) typeName(raw []byte) string {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return strings.ToLower(jsonwire.Unquote(raw))
	}
	types := schemaTypes()
	if n, err := strconv.Atoi(string(raw)); err == nil && n >= 0 && n < len(types) {
		return types[n]
	}
	if !t.strange {
		t.strange = true
		t.rep.Addf(dragoman.Dropped, dragoman.Warn, t.at, "a type %.20s, which is the number of none", raw)
	}
	return unspecified
}

func (t *closedSchema) typ(m member, typ string, nullable bool) {
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

// enum writes the values. Those of a number stand in strings on the wire.
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

// number takes a number out of the string that proto's int64 comes in.
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
