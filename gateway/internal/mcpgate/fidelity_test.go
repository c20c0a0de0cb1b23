package mcpgate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rawTool and rawResult have what decoding with types loses: unknown fields, numbers above 2^53,
// null and absent values, unknown content types, the order of fields, and characters that
// encoders escape.
const rawTool = `{"x-first":1,"name":"raw","title":"Raw <&>","inputSchema":{"type":"object","z":0,"properties":{"n":{"type":"integer","maximum":9007199254740993,"description":"<b> & é"}},"a":1.0},` +
	`"annotations":{"readOnlyHint":true,"x-vendor":null},"icons":[{"src":"data:image/png;base64,AA=="}],"_meta":{"vendor/x":9007199254740993}}`

const rawBare = `{"name":"bare","inputSchema":{"type":"object"}}`

const rawContent = `"content":[{"type":"text","text":"a <&> \u2028 é","annotations":{"audience":["user"],"priority":0.50}},{"type":"hologram","x":[1e3,{"k":null}]},` +
	`{"type":"image","data":"iVBO","mimeType":"image/png","_meta":{"b":1,"a":2}}],"x-unknown":{"z":1,"a":9007199254740993},"isError":false`

func rawResult(revision, structured string) string {
	out := `{` + rawContent
	if structured != "" {
		out += `,"structuredContent":` + structured
	}
	out += `,"_meta":{"vendor/trace":9007199254740993}`
	if revision >= r2607 {
		out += `,"resultType":"complete"`
	}
	return out + `}`
}

// compact removes what JSON encoders may change without a change of the value: the escapes of
// characters. Numbers, nulls, names and order stay.
func compact(t testing.TB, raw json.RawMessage) string {
	t.Helper()
	s := string(raw)
	for _, e := range []string{"<", ">", "&", "\u2028", "é"} {
		s = strings.ReplaceAll(s, fmt.Sprintf(`\u%04x`, []rune(e)[0]), e)
	}
	return s
}

func TestPitfallK9_ResultsAndToolsKeepTheirBytes(t *testing.T) {
	for _, server := range []string{r2411, r2503, r2506, r2511, r2607} {
		for _, client := range []string{r2506, r2511, r2607} {
			for _, structured := range []string{"", "null", `{"big":9007199254740993,"b":1,"a":1.0,"none":null}`, "[1]"} {
				t.Run(server+" "+client+" "+structured, func(t *testing.T) {
					f := newFake(server)
					f.tools = []string{rawTool, rawBare}
					f.results = map[string]string{"raw": rawResult(server, structured)}
					s := serve(t, open(over(t, "http", f)))
					c := s.connect("/mcp/fake", client, nil)

					list := compact(t, c.do("tools/list", nil).result)
					for _, want := range f.tools {
						if !strings.Contains(list, want) {
							t.Errorf("%s lacks %s", list, want)
						}
					}
					if strings.Contains(list, "destructiveHint") {
						t.Errorf("an absent hint became one: %s", list)
					}

					got := compact(t, c.call("raw", object{"n": 1}).result)
					if !strings.Contains(got, compact(t, json.RawMessage(rawContent))) {
						t.Errorf("%s\nlacks %s", got, rawContent)
					}
					has := structured != "" && (client >= r2607 || structured[0] == '{')
					if want := `"structuredContent":` + structured; strings.Contains(got, want) != has || !has && strings.Contains(got, "structuredContent") {
						t.Errorf("structured %s: %s", structured, got)
					}
					if !strings.Contains(got, `"vendor/trace":9007199254740993`) {
						t.Errorf("no _meta: %s", got)
					}
					if strings.Contains(got, "resultType") != (client >= r2607) {
						t.Errorf("the result has the form of another revision: %s", got)
					}
				})
			}
		}
	}
}

func TestArgumentsReachTheServerWithTheirBytes(t *testing.T) {
	f := newFake(r2511)
	f.tools = []string{rawTool}
	s := serve(t, open(over(t, "http", f)))
	c := s.connect("/mcp/fake", r2607, nil)
	const args = `{"z":9007199254740993,"n":1,"a":{"y":null,"x":"<&> é"}}`
	c.call("raw", nil, object{"arguments": json.RawMessage(args)})
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.got, "tools/call")
	if i < 0 || compact(t, field[json.RawMessage](f.params[i], "arguments")) != args {
		t.Errorf("%s", f.params)
	}
}

// At the endpoint of all servers only names and URIs change.
func TestTheCommonEndpointRenamesOnlyNamesAndURIs(t *testing.T) {
	f := newFake(r2511)
	f.tools = []string{`{"name":"view","inputSchema":{"type":"object"},"x":1,"_meta":{"ui":{"resourceUri":"ui://view/main","visibility":["app"]},"ui/resourceUri":"ui://view/main"}}`}
	f.results = map[string]string{"view": `{"content":[{"type":"resource_link","uri":"file:///a.txt","name":"a","x":1},{"type":"resource","resource":{"uri":"file:///b","text":"t","x":9007199254740993}}]}`}
	s := serve(t, open(over(t, "http", f)))
	for _, client := range []string{r2506, r2607} {
		c := s.connect("/mcp", client, nil)
		const want = `{"name":"mcp_fake__view","inputSchema":{"type":"object"},"x":1,"_meta":{"ui":{"resourceUri":"ui://fake+view/main","visibility":["app"]},"ui/resourceUri":"ui://fake+view/main"}}`
		if list := string(c.do("tools/list", nil).result); !strings.Contains(list, want) {
			t.Errorf("%s", list)
		}
		r := c.call("mcp_fake__view", nil)
		for _, want := range []string{`{"type":"resource_link","uri":"fake+file:///a.txt","name":"a","x":1}`, `{"uri":"fake+file:///b","text":"t","x":9007199254740993}`} {
			if !strings.Contains(string(r.result), want) {
				t.Errorf("%s lacks %s", r.result, want)
			}
		}
		own := s.connect("/mcp/fake", client, nil)
		if r := own.call("view", nil); !strings.Contains(string(r.result), `"uri":"file:///a.txt"`) {
			t.Errorf("%v", r)
		}
	}
}
