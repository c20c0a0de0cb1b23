package jsonwire_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

func TestEditsKeepOtherFieldsAndTheirOrder(t *testing.T) {
	const object = `{"b":1.0,"a":{"x":[ 2 ]},"c":null}`
	upper := func([]byte) []byte { return []byte(`"new"`) }
	for name, test := range map[string]struct{ got, want string }{
		"without":              {string(jsonwire.Without([]byte(object), "a", "z")), `{"b":1.0,"c":null}`},
		"set a field":          {string(jsonwire.With([]byte(object), "b", []byte("7"))), `{"b":7,"a":{"x":[ 2 ]},"c":null}`},
		"set a new field":      {string(jsonwire.With([]byte(object), "d", []byte("7"))), `{"b":1.0,"a":{"x":[ 2 ]},"c":null,"d":7}`},
		"fill absent fields":   {string(jsonwire.Fill([]byte(object), jsonwire.Field{Name: "c", Value: "3"}, jsonwire.Field{Name: "e", Value: "4"})), `{"b":1.0,"a":{"x":[ 2 ]},"c":null,"e":4}`},
		"edit":                 {string(jsonwire.EditField([]byte(object), "a", upper)), `{"b":1.0,"a":"new","c":null}`},
		"edit an absent field": {string(jsonwire.EditField([]byte(object), "z", upper)), object},
		"each":                 {string(jsonwire.EditEach([]byte(`[1, 2]`), upper)), `["new","new"]`},
		"type":                 {jsonwire.TypeOf([]byte(`{"x":{"type":"inner"},"type":"outer"}`)), "outer"},
		"type of a number":     {jsonwire.TypeOf([]byte(`{"type":3}`)), ""},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %s, want %s", name, test.got, test.want)
		}
	}
	for _, other := range []string{`[1]`, `"s"`, `null`} {
		for _, got := range [][]byte{
			jsonwire.Without([]byte(other), "a"), jsonwire.With([]byte(other), "a", []byte("1")), jsonwire.EditField([]byte(other), "a", upper),
		} {
			if string(got) != other {
				t.Errorf("%s became %s", other, got)
			}
		}
	}
	if got := jsonwire.EditEach([]byte(object), upper); string(got) != object {
		t.Errorf("an object became %s", got)
	}
}
