package dialect_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
)

// What Loss.Path promises of an encoder: the pointer leads into the stored JSON
// of the canonical value. A member that is not modelled stands under its native
// name in the object that held it, and one that was invented has its place
// there, empty.

func TestR11_EveryPointerOfAWrittenResponseLeadsIntoTheResponse(t *testing.T) {
	forEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		resp := gen.Options{Tidy: true}.Response().Draw(t, "response")
		enc, _ := c.EncodeResponse(resp, dialect.EncodeOptions{Seed: "s", Rebuild: rapid.Bool().Draw(t, "rebuild")})
		leadInto(t, resp, enc.Report)
	})
}

func TestR11_EveryPointerOfAWrittenRequestLeadsIntoTheRequest(t *testing.T) {
	forEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		req := gen.Options{Tidy: true}.Request().Draw(t, "request")
		enc, _ := c.EncodeRequest(req, dialect.EncodeOptions{Seed: "s", Target: drawServer(t), Rebuild: rapid.Bool().Draw(t, "rebuild")})
		leadInto(t, req, enc.Report)
	})
}

func TestR11_EveryPointerOfAWrittenStreamLeadsIntoTheResponseItCollectsTo(t *testing.T) {
	forEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		evs := withoutChunks(gen.Options{Tidy: true}.Events().Draw(t, "events"))
		var col dragoman.Collector
		for _, ev := range evs {
			col.Add(ev)
		}
		_, rep, _ := streamed(c, evs, dialect.EncodeOptions{Seed: "s", StreamUsage: true, Rebuild: true})
		resp, _ := col.Response()
		leadInto(t, resp, rep)
	})
}

// leadInto fails for a loss whose pointer leads nowhere in v.
func leadInto(t rapid.TB, v any, rep dragoman.Report) {
	stored, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(stored, &doc); err != nil {
		t.Fatal(err)
	}
	for i, l := range rep.Losses {
		if slices.Contains(rep.Losses[:i], l) {
			t.Errorf("reported twice: %s", l)
		}
		there, err := leads(doc, l)
		if err != nil {
			t.Errorf("%s\n%v in %s", l, err, stored)
		}
		if l.From != "" && err == nil && !strings.Contains(flat(there), l.From) && qualified(there) != l.From {
			t.Errorf("%s\nwhat was written otherwise is not there: %v", l, there)
		}
	}
}

// qualified is the name of a tool or a call with its namespace.
func qualified(v any) string {
	ns, _ := member(v, "namespace")
	name, _ := member(v, "name")
	return strings.TrimSpace(flat(ns)) + "." + strings.TrimSpace(flat(name))
}

// flat is all the text in a JSON value.
func flat(v any) string {
	switch v := v.(type) {
	case string:
		return v + "\n"
	case []any:
		all := ""
		for _, e := range v {
			all += flat(e)
		}
		return all
	case map[string]any:
		all := ""
		for _, e := range v {
			all += flat(e)
		}
		return all
	default:
		return ""
	}
}

// leads follows the pointer of a loss to what stands there; nil where that is in
// no member of the canonical form.
func leads(doc any, l dragoman.Loss) (there any, err error) {
	if l.Path == "" {
		return doc, nil
	}
	rest, ok := strings.CutPrefix(l.Path, "/")
	if !ok {
		return nil, errors.New("no JSON pointer")
	}
	at := ""
	for rest != "" || at == "" {
		name, after, more := strings.Cut(rest, "/")
		next, ok := member(doc, unescaped(name))
		if !ok {
			if native(doc, "/"+rest) || l.Kind == dragoman.Synthesized && !more {
				return nil, nil
			}
			return nil, fmt.Errorf("nothing stands at %s of %q", "/"+rest, at)
		}
		doc, rest, at = next, after, at+"/"+name
	}
	return doc, nil
}

func unescaped(name string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(name) }

func member(doc any, name string) (any, bool) {
	switch doc := doc.(type) {
	case string: // native JSON, which the pointer goes on in
		var inside any
		if json.Unmarshal([]byte(doc), &inside) != nil {
			return nil, false
		}
		if _, text := inside.(string); text {
			return nil, false
		}
		return member(inside, name)
	case map[string]any:
		v, ok := doc[name]
		return v, ok
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(doc) {
			return nil, false
		}
		return doc[i], true
	default:
		return nil, false
	}
}

// native reports whether an object keeps a native member at a pointer, or one
// that the pointer leads into.
func native(doc any, path string) bool {
	extra, _ := member(doc, "extra")
	fields, _ := member(extra, "fields")
	list, _ := fields.([]any)
	return slices.ContainsFunc(list, func(f any) bool {
		kept, _ := member(f, "path")
		s, _ := kept.(string)
		return path == s || strings.HasPrefix(path, s+"/")
	})
}

// A second item under an index that is taken stands behind the others, and so
// does what is said of it.
func TestR11_ThePointersOfAnItemUnderATakenIndexLeadToIt(t *testing.T) {
	d := codecOf(dragoman.OpenAIResponses).NewStreamDecoder(dialect.DecodeOptions{})
	wire := onWire(t, dragoman.OpenAIResponses, []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","created_at":1,"model":"m","status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":{"type":"function_call","id":"fc","call_id":"call_1","name":"f","arguments":"{}","status":"completed"}}`,
		`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"type":"function_call","id":"fc2","call_id":"","name":"g","arguments":"","status":"in_progress"}}`,
		`{"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":{"type":"function_call","id":"fc2","call_id":"","name":"g","arguments":"{\"a\":1,\"a\":2}","status":"completed"}}`,
		`{"type":"response.completed","sequence_number":4,"response":{"id":"r","object":"response","created_at":1,"model":"m","status":"completed","output":[]}}`,
	})
	var col dragoman.Collector
	emit := func(ev dragoman.Event) error { col.Add(ev); return nil }
	if err := errors.Join(d.Feed(wire, emit), d.Close(emit)); err != nil {
		t.Fatal(err)
	}
	resp, err := col.Response()
	if err != nil || len(resp.Output) != 2 {
		t.Fatal(err, len(resp.Output))
	}
	for _, c := range codecs {
		_, rep := crossed(codecOf(dragoman.OpenAIResponses), c, wire)
		if len(rep.Losses) == 0 {
			t.Errorf("%s: nothing is said of it", c.Dialect())
		}
		for _, l := range rep.Losses {
			if strings.HasPrefix(l.Path, "/output/") && !strings.HasPrefix(l.Path, "/output/0") && !strings.HasPrefix(l.Path, "/output/1") {
				t.Errorf("%s: %s", c.Dialect(), l)
			}
		}
	}
}
