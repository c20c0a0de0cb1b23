package dragoman_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
)

// mustNotPanic runs f and reports a panic as a failure.
func mustNotPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s panics: %v", what, r)
		}
	}()
	f()
}

var nilParts = []dragoman.Part{
	nil, (*dragoman.Text)(nil), (*dragoman.Reasoning)(nil), (*dragoman.Media)(nil), (*dragoman.ToolCall)(nil),
	(*dragoman.ToolResult)(nil), (*dragoman.Refusal)(nil), (*dragoman.Data)(nil), (*dragoman.Opaque)(nil),
}

var nilEvents = []dragoman.Event{
	nil, (*dragoman.ResponseStart)(nil), (*dragoman.PartStart)(nil), (*dragoman.PartDelta)(nil), (*dragoman.PartEnd)(nil),
	(*dragoman.ResponseEnd)(nil), (*dragoman.StreamError)(nil), (*dragoman.Chunk)(nil),
}

// A nil value has no effect or is an error, and never a panic.
func TestNothingPanicsOnNil(t *testing.T) {
	for _, receiver := range []any{
		(*dragoman.ToolCall)(nil), (*dragoman.ToolResult)(nil), (*dragoman.ToolSpec)(nil), (*dragoman.CallProblem)(nil),
		(*dragoman.Message)(nil), (*dragoman.Request)(nil), (*dragoman.Response)(nil), (*dragoman.Collector)(nil),
		(*dragoman.Sidecar)(nil), (*dragoman.Extra)(nil), (*dragoman.Origin)(nil), (*dragoman.Field)(nil), (*dragoman.Native)(nil),
		(*dragoman.APIError)(nil), (*dragoman.DecodeError)(nil), (*dragoman.LossError)(nil), (*dragoman.Usage)(nil), (*dragoman.Count)(nil),
		(*dragoman.Text)(nil), (*dragoman.Reasoning)(nil), (*dragoman.Media)(nil), (*dragoman.Refusal)(nil), (*dragoman.Data)(nil), (*dragoman.Opaque)(nil),
		(*dragoman.ResponseStart)(nil), (*dragoman.PartStart)(nil), (*dragoman.PartDelta)(nil), (*dragoman.PartEnd)(nil),
		(*dragoman.ResponseEnd)(nil), (*dragoman.StreamError)(nil), (*dragoman.Chunk)(nil), (*dragoman.Report)(nil),
	} {
		v := reflect.ValueOf(receiver)
		for i := range v.NumMethod() {
			m := v.Type().Method(i)
			if _, byValue := v.Type().Elem().MethodByName(m.Name); byValue {
				continue // Go itself panics
			}
			args := []reflect.Value{}
			for k := 1; k < m.Type.NumIn() && (!m.Type.IsVariadic() || k < m.Type.NumIn()-1); k++ {
				args = append(args, reflect.Zero(m.Type.In(k)))
			}
			mustNotPanic(t, fmt.Sprintf("%T.%s", receiver, m.Name), func() { v.Method(i).Call(args) })
		}
		mustNotPanic(t, fmt.Sprintf("JSON of %T", receiver), func() { _, _ = json.Marshal(receiver) })
	}
	for _, p := range nilParts {
		name := fmt.Sprintf("%T", p)
		mustNotPanic(t, "MarshalPart of "+name, func() {
			if _, err := dragoman.MarshalPart(p); err == nil {
				t.Errorf("a nil %s is stored", name)
			}
		})
		for _, in := range []dragoman.Part{p, &dragoman.ToolResult{Content: []dragoman.Part{p}}} {
			m := dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{in}}
			mustNotPanic(t, "a message of "+name, func() {
				_, _, _ = m.Text(), m.ToolCalls(), m.Fingerprint()
				_, _ = json.Marshal(m)
			})
			mustNotPanic(t, "a response of "+name, func() {
				r := dragoman.Response{Output: []dragoman.Message{m}, Alternatives: []dragoman.Candidate{{Output: []dragoman.Message{m}}}}
				_, _, _ = r.Text(), r.ToolCalls(), r.Fingerprint()
				_, _ = json.Marshal(r)
				if r.Validate() == nil {
					t.Errorf("a response with a nil %s is valid", name)
				}
			})
			mustNotPanic(t, "a request of "+name, func() {
				r := dragoman.Request{Instructions: []dragoman.Part{in}, Messages: []dragoman.Message{m}}
				_ = r.Fingerprint()
				_, _ = json.Marshal(r)
				if r.Validate() == nil {
					t.Errorf("a request with a nil %s is valid", name)
				}
			})
		}
		mustNotPanic(t, "results with "+name, func() {
			_ = (&dragoman.ToolResult{Content: []dragoman.Part{p}}).Text()
			_ = dragoman.ToolResults(nil)
		})
		mustNotPanic(t, "collecting "+name, func() {
			var c dragoman.Collector
			c.Add(&dragoman.ResponseStart{})
			c.Add(&dragoman.PartStart{Part: p})
			c.Add(&dragoman.PartEnd{Part: p})
			c.Add(&dragoman.ResponseEnd{})
			r, err := c.Response()
			if err != nil || len(r.Output) != 0 {
				t.Errorf("%v, %+v", err, r)
			}
		})
	}
	for _, ev := range nilEvents {
		name := fmt.Sprintf("%T", ev)
		mustNotPanic(t, "an event that is nil, "+name, func() {
			if err := dragoman.ValidateEvent(ev); !errors.Is(err, dragoman.ErrInvalid) {
				t.Errorf("a nil %s is valid: %v", name, err)
			}
			if _, err := dragoman.MarshalEvent(ev); err == nil {
				t.Errorf("a nil %s is stored", name)
			}
			var c dragoman.Collector
			c.Add(ev)
			if r, err := c.Response(); !errors.Is(err, dragoman.ErrIncompleteStream) || r == nil || r.Error != nil {
				t.Errorf("a nil %s is collected: %+v, %v", name, r, err)
			}
		})
	}
	mustNotPanic(t, "Collect", func() {
		if r, err := dragoman.Collect(nil); r == nil || !errors.Is(err, dragoman.ErrIncompleteStream) {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
