package dragoman_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"pgregory.net/rapid"
)

// fill sets every exported field below v to something other than zero: one
// element in every list, one of each kind in a list of parts. Within the
// content of a result there are no further results.
func fill(v reflect.Value, nested bool) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), nested)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), nested)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[[]dragoman.Part]() {
			v.Set(reflect.ValueOf(allParts(nested)))
			return
		}
		if v.Type() == reflect.TypeFor[[]dragoman.Contribution]() {
			v.Set(reflect.ValueOf([]dragoman.Contribution{{Source: "x"}}))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), nested)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(7, 0)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), nested)
		}
	case reflect.Interface: // an error
		v.Set(reflect.ValueOf(dragoman.ErrTooLarge))
	default:
		panic("fill cannot make a " + v.Type().String())
	}
}

func allParts(nested bool) []dragoman.Part {
	parts := []dragoman.Part{
		new(dragoman.Text), new(dragoman.Reasoning), new(dragoman.Media), new(dragoman.ToolCall), new(dragoman.Refusal), new(dragoman.Data), new(dragoman.Opaque),
	}
	if !nested {
		parts = append(parts, new(dragoman.ToolResult))
	}
	for _, p := range parts {
		fill(reflect.ValueOf(p).Elem(), true)
	}
	return parts
}

// site is one place below a value that can be changed, with the names of the
// fields that lead to it.
type site struct {
	fields []string
	edit   func()
}

// sites lists every change that can be made below v.
func sites(v reflect.Value, fields []string) []site {
	here := func(edit func()) site { return site{slices.Clone(fields), edit} }
	switch v.Kind() {
	case reflect.String:
		return []site{here(func() { v.SetString(v.String() + "y") })}
	case reflect.Bool:
		return []site{here(func() { v.SetBool(!v.Bool()) })}
	case reflect.Int, reflect.Int64:
		return []site{here(func() { v.SetInt(v.Int() + 1) })}
	case reflect.Uint8:
		return []site{here(func() { v.SetUint(v.Uint() + 1) })}
	case reflect.Array:
		return sites(v.Index(0), fields)
	case reflect.Pointer:
		return append(sites(v.Elem(), fields), here(func() { v.SetZero() }))
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[error]() {
			return []site{here(func() { v.SetZero() })}
		}
		return sites(v.Elem().Elem(), fields) // a part
	case reflect.Slice:
		all := []site{
			here(func() { v.SetLen(v.Len() - 1) }),
			here(func() { v.Set(reflect.AppendSlice(v, v)) }),
		}
		for i := range v.Len() {
			all = append(all, sites(v.Index(i), fields)...)
		}
		return all
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return []site{here(func() { v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(time.Second))) })}
		}
		if v.Type() == reflect.TypeFor[dragoman.Contribution]() {
			return nil
		}
		var all []site
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			all = append(all, sites(v.Field(i), append(slices.Clone(fields), name))...)
		}
		return all
	default:
		panic("sites cannot change a " + v.Type().String())
	}
}

// unseen are the fields that a fingerprint leaves out, each with the reason. A
// field that is neither here nor in the hash fails the test.
var unseen = map[string]string{
	"Message.Origin":           "says where the message may be replayed, not what it says",
	"Message.Native":           "is the sidecar that the fingerprint guards",
	"Request.Native":           "is the sidecar that the fingerprint guards",
	"Response.Native":          "is the sidecar that the fingerprint guards",
	"Response.Origin":          "says where the response may be replayed, not what it says",
	"Request.Model":            "changes alone without touching the other bytes",
	"Response.Model":           "changes alone without touching the other bytes",
	"Request.Contributions":    "is code, never on a wire",
	"Response.Losses":          "tells how the response came about, not what it says",
	"Response.Failover":        "describes how the response came about, not its content",
	"Reasoning.Origin":         "says where the state may be replayed, not what it says",
	"ToolCall.Synthetic":       "is our note about the id, never on a wire",
	"ToolCall.PayloadFormat":   "says how the call was read, never on a wire",
	"ToolCall.PayloadMetadata": "says how the call was read, never on a wire",
	"ToolCall.Problem":         "is our verdict about the arguments, never on a wire",
	"ToolResult.Synthetic":     "is our note, never on a wire",
	"Opaque.Hosted":            "follows from the native type",
	"ToolResult.Display":       "is for humans, never on a wire",
	"Opaque.CallID":            "is read from JSON, which counts",
	"ToolSpec.Source":          "is guarded by its own mirror; it counts for hosted tools, see below",
	"APIError.Status":          "is a fact of the transport, not of the body",
	"APIError.RequestID":       "is a fact of the transport, not of the body",
	"APIError.RetryAfter":      "is a fact of the transport, not of the body",
	"APIError.Err":             "is a cause on our side, never on a wire",
}

func checkFingerprint[T any](t *testing.T, seen map[string]bool, print func(*T) dragoman.Fingerprint) {
	t.Helper()
	fresh := func() (*T, []site) {
		v := new(T)
		fill(reflect.ValueOf(v).Elem(), false)
		return v, sites(reflect.ValueOf(v).Elem(), nil)
	}
	v, all := fresh()
	base := print(v)
	for i := range all {
		v, again := fresh()
		s := again[i]
		s.edit()
		excluded := false
		for _, f := range s.fields {
			if _, ok := unseen[f]; ok {
				excluded, seen[f] = true, true
			}
		}
		if changed := print(v) != base; changed == excluded {
			t.Errorf("changing %s: fingerprint changed %v, listed as unseen %v", strings.Join(s.fields, " > "), changed, excluded)
		}
	}
}

func TestFingerprintCoversEveryFieldExceptTheListed(t *testing.T) {
	seen := map[string]bool{}
	checkFingerprint(t, seen, (*dragoman.Message).Fingerprint)
	checkFingerprint(t, seen, (*dragoman.ToolSpec).Fingerprint)
	checkFingerprint(t, seen, (*dragoman.Request).Fingerprint)
	checkFingerprint(t, seen, (*dragoman.Response).Fingerprint)
	for f := range unseen {
		if !seen[f] {
			t.Errorf("%s is listed but is not a field", f)
		}
	}
}

func TestHostedToolFingerprintIsTheSourceFingerprint(t *testing.T) {
	hosted := func(format dragoman.Format, def string) dragoman.Fingerprint {
		s := dragoman.ToolSpec{Kind: codes.ToolHosted, Source: &dragoman.ToolSource{Format: format, JSON: json.RawMessage(def)}}
		return s.Fingerprint()
	}
	if hosted("a", "{}") == hosted("a", "{ }") || hosted("a", "{}") == hosted("b", "{}") {
		t.Error("the definition or its format does not count")
	}
}

func TestFingerprintDistinguishesNoToolFromAllTools(t *testing.T) {
	all := dragoman.Request{ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}}
	none := dragoman.Request{ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{}}}
	if all.Fingerprint() == none.Fingerprint() {
		t.Error("they are the same")
	}
}

func TestFingerprintsDifferForDifferentValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := gen.Options{}
		a, b := o.Message().Draw(t, "a"), o.Message().Draw(t, "b")
		copied := a
		copied.Parts = slices.Clone(a.Parts)
		if a.Fingerprint() != copied.Fingerprint() {
			t.Fatal("a copy has another fingerprint")
		}
		if a.Fingerprint() == b.Fingerprint() && a.Text() != b.Text() {
			t.Fatalf("two messages share a fingerprint: %q, %q", a.Text(), b.Text())
		}
	})
}

func TestFingerprintIsInjectiveAcrossAdjacentFields(t *testing.T) {
	a := dragoman.Message{Name: "ab", Phase: "c"}
	b := dragoman.Message{Name: "a", Phase: "bc"}
	if a.Fingerprint() == b.Fingerprint() {
		t.Error("text moved from one field to the next goes unseen")
	}
}

func TestSidecarIsCurrentOnlyForItsDialectAndContent(t *testing.T) {
	m := dragoman.UserText("hi")
	side := &dragoman.Sidecar{Dialect: dialectname.Anthropic, Raw: json.RawMessage("{}"), Mirror: m.Fingerprint()}
	if !side.Current(dialectname.Anthropic, m.Fingerprint) {
		t.Error("a fresh sidecar is stale")
	}
	if side.Current(dialectname.OpenAIChat, m.Fingerprint) || (*dragoman.Sidecar)(nil).Current(dialectname.Anthropic, m.Fingerprint) {
		t.Error("a sidecar is current for another dialect, or without being there")
	}
	m.Parts[0].(*dragoman.Text).Text = "[redacted]"
	if side.Current(dialectname.Anthropic, m.Fingerprint) {
		t.Error("a redacted message still replays its old text")
	}
	if (&dragoman.Sidecar{Dialect: dialectname.Anthropic, Mirror: m.Fingerprint()}).Current(dialectname.Anthropic, m.Fingerprint) {
		t.Error("a sidecar without bytes is current")
	}
}
