package extension_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/provider/extension"
)

func object(t testing.TB, text string) extension.Object {
	t.Helper()
	o, err := extension.NewObject(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestX8_ObjectEditsKeepOtherBytes(t *testing.T) {
	const body = `{"model":"m", "n":1.50 ,"messages":[ {"role":"user"},{"role":"assistant"} ],"options":{"a":"\u0041"}}`
	for name, tc := range map[string]struct {
		place string
		value any
		want  string // nil value: what is left without it
	}{
		"a new member":           {"think", true, `{"model":"m","n":1.50,"messages":[ {"role":"user"},{"role":"assistant"} ],"options":{"a":"\u0041"},"think":true}`},
		"a member that is there": {"n", 2, `{"model":"m","n":2,"messages":[ {"role":"user"},{"role":"assistant"} ],"options":{"a":"\u0041"}}`},
		"inside of an object":    {"/options/b", "<x>", `{"model":"m","n":1.50,"messages":[ {"role":"user"},{"role":"assistant"} ],"options":{"a":"\u0041","b":"<x>"}}`},
		"objects on the way":     {"/a/b/c", json.RawMessage(`[ 1 ]`), `{"model":"m","n":1.50,"messages":[ {"role":"user"},{"role":"assistant"} ],"options":{"a":"\u0041"},"a":{"b":{"c":[ 1 ]}}}`},
		"an element":             {"/messages/1/prefix", true, `{"model":"m","n":1.50,"messages":[{"role":"user"},{"role":"assistant","prefix":true}],"options":{"a":"\u0041"}}`},
		"behind the last":        {"/messages/-/role", "tool", `{"model":"m","n":1.50,"messages":[{"role":"user"},{"role":"assistant"},{"role":"tool"}],"options":{"a":"\u0041"}}`},
		"a name with a slash":    {"/a~1b", 1, `{"model":"m","n":1.50,"messages":[ {"role":"user"},{"role":"assistant"} ],"options":{"a":"\u0041"},"a/b":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, body)
			if err := o.Set(tc.place, tc.value); err != nil {
				t.Fatal(err)
			}
			if got := string(o.JSON()); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
	o := object(t, body)
	if err := errors.Join(o.Delete("n"), o.Delete("/messages/0"), o.Delete("/no/such")); err != nil || string(o.JSON()) != `{"model":"m","messages":[{"role":"assistant"}],"options":{"a":"\u0041"}}` {
		t.Errorf("%v: %s", err, o.JSON())
	}
	for _, place := range []string{"", "/n/x", "/messages/7", "/messages/x"} {
		if err := o.Set(place, 1); place != "/n/x" && !errors.Is(err, extension.ErrNoPath) {
			t.Errorf("%q: %v", place, err)
		}
	}
	if err := object2(body).Set("/model/x", 1); !errors.Is(err, extension.ErrNoPath) {
		t.Errorf("a member of a string: %v", err)
	}
	if err := o.Set("f", func() {}); err == nil {
		t.Error("a function was written as JSON")
	}
	if err := o.SetDefault("model", "other"); err != nil || string(o.Get("model")) != `"m"` {
		t.Errorf("%v: %s", err, o.JSON())
	}
	var zero extension.Object
	if err := zero.Set("a", 1); err != nil || string(zero.JSON()) != `{"a":1}` {
		t.Errorf("%v: %s", err, zero.JSON())
	}
	for _, bad := range []string{``, `[]`, `{"a":1,"a":2}`, `{"a"`} {
		if _, err := extension.NewObject(json.RawMessage(bad)); err == nil {
			t.Errorf("%s was taken for an object", bad)
		}
	}
}

func object2(text string) *extension.Object {
	o, _ := extension.NewObject(json.RawMessage(text))
	return &o
}

func TestX4_MergeKeepsOtherFields(t *testing.T) {
	var o extension.Object
	for _, patch := range []string{`{"a":{"x":1},"mine":[1,2]}`, `{"a":{"y":2}}`, `{"a":{"x":{"deep":true}},"b":null}`, `{"a":{"x":{"more":1}}}`} {
		if err := o.Merge(json.RawMessage(patch)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := string(o.JSON()), `{"a":{"x":{"deep":true,"more":1},"y":2},"mine":[1,2],"b":null}`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if err := o.Merge(json.RawMessage(`[]`)); err == nil {
		t.Error("a list was merged")
	}
	var s struct{ Mine []int }
	if found, err := o.Read("mine", &s.Mine); !found || err != nil || len(s.Mine) != 2 {
		t.Error(found, err, s)
	}
	if found, _ := o.Read("none", &s); found {
		t.Error("nothing was found")
	}
	if b, err := json.Marshal(o); err != nil || !strings.Contains(string(b), `"deep":true`) {
		t.Error(string(b), err)
	}
}
