package gemini_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

func TestWrongTypeErrorHasPointer(t *testing.T) {
	for body, pointer := range map[string]string{
		`7`:                                          "",
		`{"contents":7}`:                             "/contents",
		`{"contents":[7]}`:                           "/contents/0",
		`{"contents":[{"role":7}]}`:                  "/contents/0/role",
		`{"contents":[{"parts":7}]}`:                 "/contents/0/parts",
		`{"contents":[{"parts":[7]}]}`:               "/contents/0/parts/0",
		`{"contents":[{"parts":[{"text":7}]}]}`:      "/contents/0/parts/0/text",
		`{"systemInstruction":7}`:                    "/systemInstruction",
		`{"tools":[{"functionDeclarations":7}]}`:     "/tools/0/functionDeclarations",
		`{"generationConfig":{"temperature":"hot"}}`: "/generationConfig/temperature",
		`{"toolConfig":{"functionCallingConfig":{"allowedFunctionNames":[7]}}}`: "/toolConfig/functionCallingConfig/allowedFunctionNames/0",
	} {
		_, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		var at *dragoman.DecodeError
		if !errors.As(err, &at) || at.Pointer != pointer {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestInvalidCallOrResultIsKept(t *testing.T) {
	req := decode(t, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":7,"args":{}}},{"text":"a"}]},{"role":"user","parts":[{"functionResponse":"x"},{"functionResponse":{"name":"orphan","response":{"output":"o"}}}]}]}`)
	c := req.Messages[0].ToolCalls()
	if len(c) != 1 || c[0].Problem == nil {
		t.Errorf("%+v", c)
	}
	if _, ok := req.Messages[1].Parts[0].(*dragoman.Opaque); !ok {
		t.Errorf("%+v", req.Messages[1].Parts[0])
	}
	if body, _ := encode(t, req, dialect.EncodeOptions{Rebuild: true}); !strings.Contains(body, `"name":7`) || !strings.Contains(body, `{"functionResponse":"x"}`) {
		t.Error(body)
	}
}

func TestSizeLimits(t *testing.T) {
	long := strings.Repeat("x", 1000)
	o := dialect.DecodeOptions{MaxBytes: 500}
	body := responseBody("STOP", `{"text":"`+long+`"}`)
	if _, _, err := codec.DecodeResponse([]byte(body), o); !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("response: %v", err)
	}
	if _, _, err := codec.DecodeRequest([]byte(`{"x":"`+long+`"}`), o); !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("request: %v", err)
	}
	for _, stream := range []string{sseStream(body), "[" + body + "]", "[" + strings.Repeat(" ", 1000), sseStream(body)[:700]} {
		for _, size := range []int{1, 100, len(stream)} {
			if _, err := drain(o, []byte(stream), size); !errors.Is(err, dragoman.ErrTooLarge) {
				t.Errorf("%.20s in chunks of %d: %v", stream, size, err)
			}
		}
	}
	many := chunk("STOP", strings.Repeat(`{"novelty":1},`, 5000)+`{"text":"a"}`)
	if _, err := drain(dialect.DecodeOptions{}, []byte(sseStream(many))); !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("parts of one event: %v", err)
	}
	for _, index := range []string{"1000000000", "-1", "128"} {
		stream := sseStream(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP","index":` + index + `}]}`)
		if _, err := drain(dialect.DecodeOptions{}, []byte(stream)); err == nil {
			t.Errorf("candidate %s was accepted", index)
		}
	}
}

func TestHostileInputIsLinear(t *testing.T) {
	calls := func(n int) string {
		var b strings.Builder
		b.WriteString(`{"contents":[{"role":"model","parts":[`)
		for i := range n {
			fmt.Fprintf(&b, `{"functionCall":{"id":"same","name":"f%d"}},`, i%7)
		}
		b.WriteString(`{"text":"a"}]},{"role":"user","parts":[`)
		for range n {
			b.WriteString(`{"functionResponse":{"name":"f1","response":{}}},{"functionResponse":{"id":"same","name":"f2","response":{}}},`)
		}
		return b.String() + `{"text":"b"}]}]}`
	}
	schema := func(n int) string {
		return `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":` + strings.Repeat(`{"type":"ARRAY","items":`, n) + `{}` + strings.Repeat(`}`, n) + `}]}]}`
	}
	bodies := map[string]func(int) string{"calls": calls, "schema": schema}
	for name, n := range map[string]int{"calls": 16_000, "schema": 4000} {
		codectest.Linear(t, name, n, func(n int) error {
			req, _, err := codec.DecodeRequest([]byte(bodies[name](n)), dialect.DecodeOptions{})
			if err == nil {
				_, err = codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
			}
			return err
		})
	}
}
