package specs_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// judge checks encoded requests of one API against its official document and
// against rules of the API that no schema can express.
type judge struct {
	api    traffic.Source
	schema *jsonschema.Schema
	// excepted counts the uses of each exception; an unused exception fails the test.
	excepted map[string]int
}

func newJudge(t *testing.T, a traffic.Source) *judge {
	return &judge{api: a, schema: compileRequest(t, a.File), excepted: map[string]int{}}
}

// complaints lists the faults of an encoded request; an empty list means that
// the server would accept it.
func (j *judge) complaints(body []byte) []string {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
	if err != nil {
		return []string{"not JSON: " + err.Error()}
	}
	var out []string
	var invalid *jsonschema.ValidationError
	if err := j.schema.Validate(doc); errors.As(err, &invalid) {
		for _, v := range leaves(doc, invalid) {
			if name := exceptionFor(j.api.File, v); name != "" {
				j.excepted[name]++
				continue
			}
			out = append(out, v.String())
		}
	} else if err != nil {
		out = append(out, err.Error())
	}
	return append(out, invariants(j.api, doc)...)
}

func (j *judge) report(t *testing.T) {
	t.Helper()
	for _, e := range specExceptions {
		if e.api != j.api.File {
			continue
		}
		if j.excepted[e.field] == 0 {
			t.Errorf("%s: the exception for %s no longer occurs: remove it", e.api, e.field)
			continue
		}
		t.Logf("%s: %5d × %s: %s (%s)", e.api, j.excepted[e.field], e.field, e.reason, e.evidence)
	}
}

// TestEncodedRequestsMatchOfficialDocuments encodes requests without opaque parts
// for each API: random ones, every recorded request of the other APIs, and
// hand-written ones for each feature.
func TestEncodedRequestsMatchOfficialDocuments(t *testing.T) {
	invalid, replayed := traffic.Checked(invalidAtSource), 0
	for _, a := range judged() {
		t.Run(a.File, func(t *testing.T) {
			j := newJudge(t, a)
			whole := false
			counts := &traffic.Tally{}
			t.Run("features", func(t *testing.T) {
				for _, f := range features() {
					t.Run(f.name, func(t *testing.T) {
						counts.Add("feature requests", 1)
						j.check(t, f.name, f.request)
					})
				}
				whole = true
			})
			t.Run("recorded requests of other APIs", func(t *testing.T) {
				for _, from := range traffic.Sources() {
					if from.File != a.File {
						j.checkRecorded(t, from, invalid, counts)
					}
				}
				replayed++
			})
			t.Run("requests of real agents", func(t *testing.T) {
				for _, x := range traffic.AgentRequests(t) {
					if x.Source.File == a.File {
						continue
					}
					req, _, err := x.Source.Codec.DecodeRequest(x.Body, dialect.DecodeOptions{})
					if err != nil {
						t.Errorf("%s: %v", x.Name, err)
						continue
					}
					counts.Add("requests of real agents", 1)
					j.check(t, x.Name, req)
				}
			})
			t.Run("random requests", func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					req := gen.Options{Plain: true}.Request().Draw(t, "request")
					for i := range req.Tools {
						// StrictUnset is the Responses default; the other dialects do
						// not have it.
						if s := &req.Tools[i]; s.Strict == codes.StrictUnset {
							s.Strict = codes.StrictOff
						}
					}
					counts.Add("random requests", 1)
					enc, err := j.api.Codec.EncodeRequest(req, dialect.EncodeOptions{})
					if errors.Is(err, dragoman.ErrUnsupported) {
						counts.Add("random requests refused: not expressible in the API", 1)
						return
					}
					if crosstest.WithoutMessages(err) { // all texts are empty, which the API does not accept
						counts.Add("random requests refused for lack of messages", 1)
						return
					}
					if err != nil {
						t.Fatalf("encoding: %v", err)
					}
					if bad := j.complaints(enc.Body); len(bad) > 0 {
						t.Fatalf("%s\n%s", strings.Join(bad, "\n"), enc.Body)
					}
				})
			})
			if whole { // not if -run selects a part
				j.report(t)
			}
			t.Log(traffic.Table([]string{a.File}, []*traffic.Tally{counts}))
		})
	}
	if replayed == len(judged()) {
		invalid.Report(t, "requests that are invalid at their source")
	}
}

func (j *judge) check(t *testing.T, name string, req *dragoman.Request) {
	t.Helper()
	enc, err := j.api.Codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		t.Errorf("%s: encoding: %v", name, err)
		return
	}
	for _, c := range j.complaints(enc.Body) {
		t.Errorf("%s: %s\n%.600s", name, c, enc.Body)
	}
}

// checkRecorded converts the recorded requests of another API.
func (j *judge) checkRecorded(t *testing.T, from traffic.Source, invalid *traffic.CheckedList, counts *traffic.Tally) {
	first := map[string]string{}
	n := map[string]int{}
	for _, x := range traffic.Recorded(t, from.File) {
		body, ok := x.Request()
		if !ok {
			continue
		}
		req, _, err := from.Codec.DecodeRequest(body, dialect.DecodeOptions{})
		if err != nil {
			continue // listed in package recorded
		}
		if req.Model == "" {
			req.Model = "m" // the URL had the model
		}
		counts.Add("recorded requests of "+from.File, 1)
		enc, err := j.api.Codec.EncodeRequest(req, dialect.EncodeOptions{})
		if wirekit.CheckReferences(req, j.api.Codec.Limits()) != nil {
			if !errors.Is(err, dragoman.ErrUnsupported) {
				t.Errorf("%s: a request that refers to stored conversation is encoded for %s: %v", x.ID(), j.api.File, err)
			}
			counts.Add("recorded requests that refer to a stored conversation", 1)
			continue
		}
		if crosstest.WithoutMessages(err) {
			counts.Add("recorded requests refused for lack of messages", 1)
			continue
		}
		if err != nil {
			t.Errorf("%s: encoding for %s: %v", x.ID(), j.api.File, err)
			continue
		}
		bad := j.complaints(enc.Body)
		if len(bad) > 0 && invalid.Has(x.ID()) {
			counts.Add("recorded requests that are invalid at their source", 1)
			continue
		}
		for _, c := range bad {
			kind, _, _ := strings.Cut(c, " (")
			n[kind]++
			if _, ok := first[kind]; !ok {
				first[kind] = fmt.Sprintf("%s: %s", x.ID(), c)
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(first)) {
		t.Errorf("from %s, %d of: %s", from.File, n[kind], first[kind])
	}
}

// TestJudgeRejectsBrokenRequests tests the judge itself: each body has one fault, and the judge must
// name it.
func TestJudgeRejectsBrokenRequests(t *testing.T) {
	for _, a := range judged() {
		t.Run(a.File, func(t *testing.T) {
			j := newJudge(t, a)
			for _, c := range brokenRequests[a.File] {
				bad := strings.Join(j.complaints([]byte(c.body)), "; ")
				if !strings.Contains(bad, c.fault) {
					t.Errorf("want a complaint about %q, got %q for %s", c.fault, bad, c.body)
				}
			}
			good := 0
			xs := traffic.Recorded(t, a.File)
			n := 0
			for _, x := range xs {
				if body, ok := x.Request(); ok && x.Status == 200 {
					n++
					if len(j.complaints(body)) == 0 {
						good++
					}
				}
			}
			t.Logf("of %d recorded requests with status 200, the judge accepts %d", n, good)
		})
	}
}

var brokenRequests = map[string][]struct{ body, fault string }{
	"openai_chat": {
		{`{"messages":[{"role":"user","content":"x"}]}`, "'model'"},
		{`{"model":"m","messages":[]}`, "/messages"},
		{`{"model":"m","messages":[{"role":"user"}]}`, "'content'"},
		{`{"model":"m","messages":[{"role":"user","content":[]}]}`, "/messages/*/content"},
		{`{"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}]}`, "'text'"},
		{`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{}}}]},{"role":"tool","tool_call_id":"a","content":"1"}]}`, "arguments"},
		{`{"model":"m","messages":[{"role":"tool","content":"1"}]}`, "'tool_call_id'"},
		{`{"model":"m","messages":[{"role":"tool","tool_call_id":"a","content":"1"}]}`, "not an open call"},
		{`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]}`, "precedes the result"},
		{`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"a b"}}]}`, "not legal"},
		{`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","name":"f"}]}`, "'function'"},
		{`{"model":"m","messages":[{"role":"user","content":"x"}],"tool_choice":"auto"}`, "without tools"},
		{`{"model":"m","messages":[{"role":"user","content":"x"}],"stop":["1","2","3","4","5"]}`, "/stop"},
		{`{"model":"m","messages":[{"role":"user","content":"x"}],"reasoning_effort":"huge"}`, "/reasoning_effort"},
		{`{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}`, "'name'"},
	},
	"openai_responses": {
		{`{"model":"m","input":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`, "/input"},
		{`{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f"}]}`, "/input"},
		{`{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]}`, "no result"},
		{`{"model":"m","input":[{"type":"function_call_output","call_id":"a","output":"1"}]}`, "not a call"},
		{`{"model":"m","input":"x","max_output_tokens":1}`, "/max_output_tokens"},
		{`{"model":"m","input":"x","tools":[{"type":"function","name":"f","parameters":{}}]}`, "strict"},
		{`{"model":"m","input":"x","tools":[{"type":"function","function":{"name":"f"}}]}`, "/tools"},
		{`{"model":"m","input":"x","tool_choice":{"type":"function","function":{"name":"f"}}}`, "/tool_choice"},
		{`{"model":"m","input":"x","service_tier":"on_demand"}`, "/service_tier"},
	},
	"anthropic_messages": {
		{`{"model":"m","messages":[{"role":"user","content":"x"}]}`, "'max_tokens'"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"tool","content":"x"}]}`, "/messages/*/role"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":" "}]}]}`, "blank text"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"{}"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`, "input"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a b"}]}]}`, "not legal"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}]}`, "after other content"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":"x"}]}`, "no result"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"},{"role":"user","content":"y"}]}`, "in a row"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f"}]}`, "/tools/*"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{}}]}`, "'type'"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"required"}}`, "/tool_choice"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],"unknown":1}`, "unknown"},
	},
	"gemini_generateContent": {
		{`{}`, "'contents'"},
		{`{"contents":[{"role":"assistant","parts":[{"text":"x"}]}]}`, "role \"assistant\""},
		{`{"contents":[{"role":"model","parts":[{"text":"x"}]}]}`, "role \"model\""},
		{`{"contents":[{"role":"user","parts":[]}]}`, "no parts"},
		{`{"contents":[{"role":"user","parts":[{"text":" "}]}]}`, "blank text"},
		{`{"contents":[{"role":"user","parts":[{"type":"text","text":"x"}]}]}`, "'type'"},
		{`{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"a/b","data":"AA==","displayName":"n"}}]}]}`, "'displayName'"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":"{}"},"thoughtSignature":"s"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]}`, "/args"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]}`, "no signature"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":"1"}}]}]}`, "/response"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}]},{"role":"user","parts":[{"functionResponse":{"name":"g","response":{}}}]}]}`, "not the next open call"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}]},{"role":"user","parts":[{"text":"x"}]}]}`, "no result"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}]}]}`, "no result"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"1f","description":"d"}]}]}`, "not legal"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}]}`, "'description'"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{},"parametersJsonSchema":{}}]}]}`, "together with"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}}`, "without functions"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"f","description":"d"}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":["f"]}}}`, "with the mode"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"f","description":"d"}]}],"toolConfig":{"functionCallingConfig":{"mode":"required"}}}`, "/mode"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":1,"thinkingLevel":"LOW"}}}`, "together with"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"responseJsonSchema":{}}}`, "output schema"},
		{`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"max_tokens":1}`, "'max_tokens'"},
	},
	"ollama_chat": {
		{`{"messages":[{"role":"user","content":"x"}],"stream":false}`, "'model'"},
		{`{"model":"m","messages":[{"role":"user","content":"x"}]}`, "stream is not set"},
		{`{"model":"m","messages":[{"role":"developer","content":"x"}],"stream":false}`, "/messages/*/role"},
		{`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"stream":false}`, "/messages/*/content"},
		{`{"model":"m","messages":[{"role":"user","content":"x","images":["data:image/png;base64,AA=="]}],"stream":false}`, "not Base64"},
		{`{"model":"m","messages":[{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"1","tool_name":"f"}],"stream":false}`, "arguments"},
		{`{"model":"m","messages":[{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]}],"stream":false}`, "no result"},
		{`{"model":"m","messages":[{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"user","content":"x"}],"stream":false}`, "no result"},
		{`{"model":"m","messages":[{"role":"tool","content":"1","tool_name":"f"}],"stream":false}`, "not the next open call"},
		{`{"model":"m","messages":[{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"tool","content":"1"}],"stream":false}`, "not the next open call"},
		{`{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"f"}}],"stream":false}`, "'parameters'"},
		{`{"model":"m","messages":[],"tool_choice":"auto","stream":false}`, "'tool_choice'"},
		{`{"model":"m","messages":[],"think":"huge","stream":false}`, "/think"},
		{`{"model":"m","messages":[],"temperature":1,"stream":false}`, "'temperature'"},
	},
}
