package matrix_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

var update = flag.Bool("update", false, "rewrite docs/matrix.md")

// The matrix converts every feature from every dialect to every dialect, whole and streamed. A cell
// is lossless if the decoded result has the same facts. Otherwise the report must name every lost
// fact, and no significant fact that was not lost.
func TestMatrix_CellsAreLosslessOrReportTheirLosses(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no matrix features: %v", err)
	}
	doc := newMatrixDoc()
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sections := map[string][]byte{}
		for _, f := range ar.Files {
			sections[f.Name] = bytes.TrimSpace(f.Data)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		for _, kind := range []string{"request", "response", "stream"} {
			for _, in := range crosstest.Codecs {
				section := kind
				if kind == "stream" {
					section = "response"
				}
				src, donor := sections[string(in.Dialect())+"/"+section+".json"], in
				if src == nil {
					src, donor = findDonor(sections, section)
				}
				for _, out := range crosstest.Codecs {
					cell := fmt.Sprintf("%s/%s/%s to %s", name, kind, in.Dialect(), out.Dialect())
					if src == nil {
						continue // no dialect has this feature in this kind of message
					}
					t.Run(cell, func(t *testing.T) {
						m := &matrixCell{t: t, in: in, out: out, tools: sections["tools.json"]}
						body := src
						if kind == "stream" {
							body = crosstest.StreamOf(t, donor.Dialect(), src)
						}
						var res cellResult
						if donor == in {
							res = m.run(kind, body)
						} else {
							res = m.borrowed(kind, donor, body)
						}
						m.judge(res)
						doc.add(name, kind, in, out, res.withoutMovedModel())
					})
				}
			}
		}
	}
	table := doc.String()
	t.Log("\n" + table)
	path := filepath.Join("..", "..", "..", "docs", "matrix.md")
	if *update {
		if err := os.WriteFile(path, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != table {
		t.Errorf("docs/matrix.md is out of date; run: go test ./dialect/internal/matrix -run TestMatrix -update (%v)", err)
	}
}

type matrixCell struct {
	t       *testing.T
	in, out dialect.Codec
	tools   []byte
}

// findDonor finds a dialect that can express a feature.
func findDonor(sections map[string][]byte, section string) ([]byte, dialect.Codec) {
	for _, c := range []dialect.Codec{openairesponses.Codec{}, anthropic.Codec{}, openaichat.Codec{}} {
		if src := sections[string(c.Dialect())+"/"+section+".json"]; src != nil {
			return src, c
		}
	}
	return nil, nil
}

func (m *matrixCell) run(kind string, src []byte) cellResult {
	switch kind {
	case "request":
		return m.request(src)
	case "response":
		return m.response(src)
	default:
		return m.stream(src)
	}
}

// borrowed runs a cell whose source dialect cannot express the feature. The
// feature is first converted from another dialect, and both reports count.
func (m *matrixCell) borrowed(kind string, donor dialect.Codec, src []byte) cellResult {
	first := (&matrixCell{t: m.t, in: donor, out: m.in, tools: m.tools}).run(kind, src)
	second := m.run(kind, first.body)
	second.borrowed = true
	second.before = first.before
	second.report.Losses = append(first.report.Losses, second.report.Losses...)
	return second
}

type cellResult struct {
	borrowed  bool
	body      []byte
	identical bool
	streamed  bool // a stream is re-encoded
	before    []fact
	after     []fact
	report    dragoman.Report
}

func (m *matrixCell) request(src []byte) cellResult {
	req, rep, err := m.in.DecodeRequest(src, dialect.DecodeOptions{LiftErrors: true})
	if err != nil {
		m.t.Fatalf("decode %s: %v", m.in.Dialect(), err)
	}
	m.judgeReading(rep)
	enc, err := m.out.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		m.t.Fatalf("encode %s: %v", m.out.Dialect(), err)
	}
	back, _, err := m.out.DecodeRequest(enc.Body, dialect.DecodeOptions{Registry: enc.Registry, LiftErrors: true})
	if err != nil {
		m.t.Fatalf("decode the result: %v\n%s", err, enc.Body)
	}
	m.judgePlaces(req, enc.Body, enc.Report)
	before := requestFacts(req)
	if signs(m.out) {
		before = slices.DeleteFunc(before, func(f fact) bool { return f.kind == "encrypted reasoning" })
	}
	return cellResult{
		body: enc.Body, identical: bytes.Equal(src, enc.Body),
		before: before, after: requestFacts(back), report: enc.Report,
	}
}

// signs reports whether an API returns reasoning that can be replayed without
// being asked for it.
func signs(c dialect.Codec) bool {
	return slices.Contains([]dragoman.Dialect{dialectname.Anthropic, dialectname.Gemini, dialectname.Bedrock}, c.Dialect())
}

// registry returns a registry with the tools of the request for this response.
func (m *matrixCell) registry(c dialect.Codec) *interop.Registry {
	var specs []dragoman.ToolSpec
	if m.tools != nil {
		var raws []json.RawMessage
		if err := json.Unmarshal(m.tools, &raws); err != nil {
			m.t.Fatal(err)
		}
		reader := all.Registry(interop.Options{Target: targets.Target{Dialect: dialectname.OpenAIResponses}})
		for _, raw := range raws {
			s, err := reader.ReadTool(raw, interop.At(""), new(dragoman.Report))
			if err != nil {
				m.t.Fatal(err)
			}
			specs = append(specs, s...)
		}
	}
	return all.Registry(interop.Options{Target: targets.Target{Dialect: c.Dialect()}, Limits: c.Limits(), Tools: specs})
}

func (m *matrixCell) response(src []byte) cellResult {
	resp, rep, err := m.in.DecodeResponse(src, dialect.DecodeOptions{Registry: m.registry(m.in)})
	if err != nil {
		m.t.Fatalf("decode %s: %v", m.in.Dialect(), err)
	}
	m.judgeReading(rep)
	enc, err := m.out.EncodeResponse(resp, dialect.EncodeOptions{Registry: m.registry(m.out), Seed: "matrix"})
	if err != nil {
		m.t.Fatalf("encode %s: %v", m.out.Dialect(), err)
	}
	back, _, err := m.out.DecodeResponse(enc.Body, dialect.DecodeOptions{Registry: m.registry(m.out)})
	if err != nil {
		m.t.Fatalf("decode the result: %v\n%s", err, enc.Body)
	}
	m.judgePlaces(resp, enc.Body, enc.Report)
	m.emits(resp)
	return cellResult{body: enc.Body, identical: bytes.Equal(src, enc.Body), before: responseFacts(resp), after: responseFacts(back), report: enc.Report}
}

func (m *matrixCell) stream(src []byte) cellResult {
	dec := m.in.NewStreamDecoder(dialect.DecodeOptions{Registry: m.registry(m.in)})
	enc := m.out.NewStreamEncoder(dialect.EncodeOptions{Registry: m.registry(m.out), Seed: "matrix", StreamUsage: true})
	var before dragoman.Collector
	var body []byte
	feed := func(ev dragoman.Event) error {
		before.Add(ev)
		var err error
		body, err = enc.Encode(body, ev)
		return err
	}
	if err := dec.Feed(src, feed); err != nil {
		m.t.Fatalf("decode %s: %v", m.in.Dialect(), err)
	}
	if err := dec.Close(feed); err != nil {
		m.t.Fatalf("decode %s: %v\n%s", m.in.Dialect(), err, src)
	}
	m.judgeReading(dec.Report())
	body, err := enc.Close(body)
	if err != nil {
		m.t.Fatal(err)
	}
	back := crosstest.Collect(m.t, m.out, body, m.registry(m.out))
	first, err := before.Response()
	if err != nil {
		m.t.Fatal(err)
	}
	m.judgePlaces(first, body, enc.Report())
	m.emitsStream(src)
	return cellResult{body: body, streamed: true, identical: bytes.Equal(src, body), before: responseFacts(first), after: responseFacts(back), report: enc.Report()}
}

// fact is one piece of information in a request or response, with its pointer in the canonical form.
type fact struct {
	kind  string
	value string
	at    string
}

// same returns the part of a fact that must survive; its pointer may change.
func (f fact) same() fact { return fact{kind: f.kind, value: f.value} }

// leads reports whether the path of a loss points to a fact, into it, or to an
// ancestor of it that is smaller than the whole message or response.
func (f fact) leads(path string) bool {
	within := func(a, b string) bool { return a == b || strings.HasPrefix(a, b+"/") }
	return within(path, f.at) || strings.Count(path, "/") >= strings.Count(f.at, "/")-2 && path != "" && within(f.at, path)
}

// lossPatterns matches the losses that can account for a lost fact, by kind of fact.
var lossPatterns = map[string]*regexp.Regexp{
	"model":                 inURL,
	"reasoning":             regexp.MustCompile(`(?i)reasoning|thinking`),
	"reasoning state":       regexp.MustCompile(`(?i)reasoning|thinking|signature|encrypted`),
	"signature":             regexp.MustCompile(`(?i)signature`),
	"opaque":                regexp.MustCompile(`(?i)block|item|cannot be expressed|has no (Gemini )?form|(run|executed) by its`),
	"hosted tool":           regexp.MustCompile(`(?i)run by its own provider`),
	"tool kind":             regexp.MustCompile(`(?i)freeform`),
	"tool grammar":          regexp.MustCompile(`(?i)grammar`),
	"tool name":             regexp.MustCompile(`(?i)written as`),
	"tool parameters":       regexp.MustCompile(`(?i)freeform|parameters`),
	"namespace description": regexp.MustCompile(`(?i)namespace`),
	"tool deferred":         regexp.MustCompile(`(?i)deferred`),
	"refusal":               regexp.MustCompile(`(?i)refus`),
	"text":                  regexp.MustCompile(`(?i)refus|media part`),
	"result":                regexp.MustCompile(`(?i)media part`),
	"result media":          regexp.MustCompile(`(?i)media part`),
	"user media":            regexp.MustCompile(`(?i)media part`),
	"output name":           regexp.MustCompile(`(?i)/output`),
	"output strict":         regexp.MustCompile(`(?i)strict`),
	"stop":                  regexp.MustCompile(`(?i)stop`),
	"encrypted reasoning":   regexp.MustCompile(`(?i)encrypt`),
	"effort":                regexp.MustCompile(`(?i)effort|budget`),
	"budget":                regexp.MustCompile(`(?i)budget`),
	"parallel":              regexp.MustCompile(`(?i)parallel`),
	"store":                 regexp.MustCompile(`(?i)store`),
	"max tokens":            regexp.MustCompile(`(?i)max_`),
	"phase":                 regexp.MustCompile(`(?i)phase`),
	"usage: cache read":     regexp.MustCompile(`(?i)cache`),
	"usage: cache write":    regexp.MustCompile(`(?i)cache`),
	"usage: reasoning":      regexp.MustCompile(`(?i)reasoning`),
}

// inURL matches the losses for a model that is in the request URL. The request body
// and, in Bedrock, the response do not name it. Cohere responses do not name
// the model either.
var inURL = regexp.MustCompile(`the model is in the URL|name no model; the request URL|do not name their model`)

// withoutMovedModel removes the model from the losses of the table if the
// report states that it is in the URL.
func (res cellResult) withoutMovedModel() cellResult {
	if slices.ContainsFunc(res.report.Losses, func(l dragoman.Loss) bool { return inURL.MatchString(l.Detail) }) {
		isModel := func(f fact) bool { return f.kind == "model" }
		res.before, res.after = slices.DeleteFunc(slices.Clone(res.before), isModel), slices.DeleteFunc(slices.Clone(res.after), isModel)
	}
	return res
}

// borrowedCall matches the losses for a call in a cell whose source dialect cannot
// express its tool: decoded from there, the call keeps the converted form. In all
// other cells, a call must not change at all.
var borrowedCall = regexp.MustCompile(`freeform input written|tool "list_orders" written as`)

// atTheAPI matches a loss that happens in the API and is not visible in the bytes.
var atTheAPI = regexp.MustCompile(`is beyond 2\^53: the API stores numbers as doubles`)

// judgeReading checks the report of decoding a body in its own dialect: it must have no
// losses, except synthesized ids if the wire lacks them, and the parsed error
// marker of a result.
func (m *matrixCell) judgeReading(rep dragoman.Report) {
	for _, l := range rep.Losses {
		if l.Kind != dragoman.Synthesized && l.Kind != dragoman.Moved || l.Severity != dragoman.Info {
			m.t.Errorf("reading %s: %s", m.in.Dialect(), l)
		}
	}
}

// judgePlaces checks the pointers of a report: each resolves in the value, its old
// value is there, and its new value is in the body.
func (m *matrixCell) judgePlaces(v any, body []byte, rep dragoman.Report) {
	crosstest.CheckLossPaths(m.t, v, rep)
	for _, l := range rep.Losses {
		if l.To != "" && (l.From == l.To || !bytes.Contains(body, []byte(l.To))) {
			m.t.Errorf("%s\ndoes not match the written body: %s", l, body)
		}
	}
}

// explains reports whether a loss accounts for a fact, by its text and its pointer.
// A synthesized fact is where the target has it, and a borrowed one has moved; in
// both cases the pointer must be one that such facts have.
func (res cellResult) explains(l dragoman.Loss, f fact, re *regexp.Regexp) bool {
	if re == nil || !re.MatchString(l.String()) {
		return false
	}
	if res.borrowed || !slices.Contains(res.before, f) {
		list, _, _ := strings.Cut(strings.TrimPrefix(f.at, "/"), "/")
		return l.Path == "/"+list || strings.HasPrefix(l.Path, "/"+list+"/")
	}
	return f.leads(l.Path)
}

// judge compares the report with the facts, in both directions.
func (m *matrixCell) judge(res cellResult) {
	if m.in.Dialect() == m.out.Dialect() && !res.identical && !res.streamed {
		m.t.Errorf("same dialect in and out is not byte-identical")
	}
	lost := diffFacts(res.before, res.after)
	for _, f := range lost {
		re := lossPatterns[f.kind]
		if f.kind == "call" && res.borrowed {
			re = borrowedCall
		}
		if re == nil {
			m.t.Errorf("lost or invented %s %q, which no loss may explain\nreport:\n%s", f.kind, f.value, res.report)
			continue
		}
		if !slices.ContainsFunc(res.report.Losses, func(l dragoman.Loss) bool { return res.explains(l, f, re) }) {
			m.t.Errorf("lost or invented %s %q at %s without a loss in the report:\n%s", f.kind, f.value, f.at, res.report)
		}
	}
	for _, l := range res.report.Losses {
		if l.Severity < dragoman.Warn || atTheAPI.MatchString(l.Detail) {
			continue
		}
		if !slices.ContainsFunc(lost, func(f fact) bool { return res.explains(l, f, lossPatterns[f.kind]) }) {
			m.t.Errorf("the report has a loss without a lost fact: %s\nlost facts: %v", l, lost)
		}
	}
}

// diffFacts returns the facts that only one side has.
func diffFacts(a, b []fact) []fact {
	var out []fact
	count := map[fact]int{}
	for _, f := range a {
		count[f.same()]++
	}
	for _, f := range b {
		count[f.same()]--
	}
	for _, f := range append(slices.Clone(a), b...) {
		if count[f.same()] != 0 {
			out = append(out, f)
			count[f.same()] = 0
		}
	}
	return out
}

func requestFacts(req *dragoman.Request) []fact {
	var fs []fact
	at := "/model"
	add := func(kind, format string, args ...any) { fs = append(fs, fact{kind, fmt.Sprintf(format, args...), at}) }
	add("model", "%s", req.Model)
	system := joinParts(req.Instructions)
	messages := req.Messages
	for len(messages) > 0 && (messages[0].Role == dragoman.RoleSystem || messages[0].Role == dragoman.RoleDeveloper) {
		system += messages[0].Text()
		messages = messages[1:]
	}
	at = "/instructions"
	add("system", "%s", system)
	for i := range req.Tools {
		s := &req.Tools[i]
		at = fmt.Sprintf("/tools/%d", i)
		if s.Kind == codes.ToolHosted {
			add("hosted tool", "%s", s.Source.JSON)
			continue
		}
		add("tool name", "%d %s %s", i, s.Namespace, s.Name)
		add("tool kind", "%d %s", i, s.Kind)
		add("tool description", "%d %s", i, s.Description)
		add("tool parameters", "%d %s", i, arguments(s.Parameters))
		if s.Grammar != nil {
			add("tool grammar", "%d %v", i, *s.Grammar)
		}
		if s.NamespaceDescription != "" {
			add("namespace description", "%s", s.NamespaceDescription)
		}
		if s.Deferred {
			add("tool deferred", "%d", i)
		}
	}
	at = "/tool_choice"
	if c := req.ToolChoice; c != nil && c.Mode != dragoman.ChoiceAuto {
		add("choice", "%s %v", c.Mode, c.Tools)
	}
	at = "/parallel_tool_calls"
	if p := req.ParallelToolCalls; p != nil && !*p {
		add("parallel", "%v", *p)
	}
	at = "/output"
	if o := req.Output; o != nil {
		add("output", "%s %s", o.Kind, sorted(o.Schema))
		add("output name", "%s", o.Name)
		add("output strict", "%v", o.Strict == codes.StrictOn || o.Strict == codes.StrictAuto)
	}
	at = "/reasoning"
	if r := req.Reasoning; r != nil && r.Effort != "" {
		add("effort", "%s", r.Effort)
	}
	if r := req.Reasoning; r != nil && r.BudgetTokens != nil {
		add("budget", "%d", *r.BudgetTokens)
	}
	if r := req.Reasoning; r != nil && r.Encrypted != nil && *r.Encrypted {
		at = "/reasoning/encrypted"
		add("encrypted reasoning", "asked for")
	}
	return append(fs, conversationFacts(messages, "/messages", len(req.Messages)-len(messages))...)
}

// conversationFacts lists the facts of a conversation in order, independent of
// how it is split into messages. first is the index of the first message in list.
func conversationFacts(ms []dragoman.Message, list string, first int) []fact {
	var fs []fact
	at := ""
	add := func(kind, value string) { fs = append(fs, fact{kind, value, at}) }
	sign := func(signature string) {
		if signature != "" && signature != toolwire.DummySignature { // a placeholder
			add("signature", signature)
		}
	}
	for i := range ms {
		role := ms[i].Role
		last := -1 // index of the preceding text, which the next text continues
		for j, p := range ms[i].Parts {
			at = fmt.Sprintf("%s/%d/parts/%d", list, first+i, j)
			switch p := p.(type) {
			case *dragoman.Text:
				if last < 0 {
					last = len(fs)
					add("text", string(role)+": ")
				}
				fs[last].value += p.Text
				sign(p.Signature)
				continue
			case *dragoman.Refusal:
				add("refusal", p.Text)
			case *dragoman.ToolCall:
				obj := sorted([]byte(p.Arguments))
				if p.Payload == codes.PayloadText {
					obj = p.Arguments
				}
				add("call", fmt.Sprintf("%s %s.%s %s %s hosted=%v", p.ID, p.Namespace, p.Name, p.Payload, obj, p.Hosted))
				sign(p.Signature)
			case *dragoman.ToolResult:
				outcome := p.Outcome
				if outcome == codes.OutcomeOK {
					outcome = codes.OutcomeUnknown // neither means failure
				}
				add("result", fmt.Sprintf("%s %s %q", p.CallID, outcome, p.Text()))
				for _, c := range p.Content {
					if m, ok := c.(*dragoman.Media); ok {
						add("result media", m.MIME+m.Base64+m.URL)
					}
				}
			case *dragoman.Media:
				add("user media", p.MIME+p.Base64+p.URL)
			case *dragoman.Reasoning:
				if v := p.Text + strings.Join(p.Summary, ""); v != "" {
					add("reasoning", v)
				}
				if p.Signature+p.Encrypted != "" {
					add("reasoning state", p.Signature+p.Encrypted)
				}
			case *dragoman.Opaque:
				add("opaque", p.Type+sorted(p.JSON))
			}
			last = -1
		}
		at = fmt.Sprintf("%s/%d", list, first+i)
		if ms[i].Phase != "" {
			add("phase", ms[i].Phase)
		}
	}
	return fs
}

func responseFacts(r *dragoman.Response) []fact {
	fs := []fact{{"stop", string(r.Stop.Reason), "/stop"}, {"model", r.Model, "/model"}}
	u := r.Usage
	for _, c := range []struct {
		kind, at string
		n        dragoman.Count
	}{
		{"input", "input", u.Input},
		{"output", "output", u.Output},
		{"cache read", "cache_read", u.CacheRead},
		{"cache write", "cache_write", u.CacheWrite},
		{"reasoning", "reasoning", u.Reasoning},
	} {
		fs = append(fs, fact{"usage: " + c.kind, fmt.Sprint(c.n.N), "/usage/" + c.at})
	}
	return append(fs, conversationFacts(r.Output, "/output", 0)...)
}

// arguments returns the parameters of a tool. A tool without parameters has a
// different schema on every wire, or none (quirk A20).
func arguments(parameters []byte) string {
	s := sorted(parameters)
	if s == `{"properties":{},"type":"object"}` {
		return "{}"
	}
	return s
}

func joinParts(parts []dragoman.Part) string {
	m := dragoman.Message{Parts: parts}
	return m.Text()
}

// sorted returns JSON with sorted keys and the original text of numbers; empty
// arguments are an empty object.
func sorted(raw []byte) string {
	if len(bytes.TrimSpace(raw)) == 0 {
		return "{}"
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return string(raw)
	}
	b, _ := json.Marshal(v)
	return string(b)
}
