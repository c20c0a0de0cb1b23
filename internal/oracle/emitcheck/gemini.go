package emitcheck

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

var geminiFinishes = []string{
	"FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL",
	"UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER", "NO_IMAGE", "CONTINUATION",
}

// geminiData lists the fields of a part that are exclusive: a part has exactly one.
var geminiData = []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"}

// eitherFraming is SSE or one array, depending on the first byte.
type eitherFraming struct {
	checker frameChecker
	chosen  framing
}

func (f *eitherFraming) feed(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if f.chosen == nil {
		if p[0] == '[' {
			f.chosen = &array{checker: f.checker}
		} else {
			f.chosen = &sseFraming{checker: f.checker, lines: lineReader{passThrough: f.checker.isPassThrough()}}
		}
	}
	return f.chosen.feed(p)
}

func (f *eitherFraming) end() error {
	if f.chosen == nil {
		return f.checker.end()
	}
	return f.chosen.end()
}

// rawElements splits an array into its elements.
func rawElements(body []byte) ([][]byte, error) {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return nil, errors.New("the body is not an array")
	}
	var out [][]byte
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return nil, fmt.Errorf("element %d: not JSON: %w", len(out), err)
		}
		out = append(out, bytes.Clone(v))
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	if rest := bytes.TrimSpace(body[d.InputOffset():]); len(rest) > 0 {
		return nil, fmt.Errorf("after the array: %.80q", rest)
	}
	return out, nil
}

func geminiErrorBody(c *check, status int, body []byte) {
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte{'['}) {
		// In the array form, an error is in an array too.
		elements, err := rawElements(body)
		if err != nil || len(elements) != 1 {
			c.bad("", "an error array must have one element: %v", err)
			return
		}
		body = elements[0]
	}
	geminiError(c.root(body).obj("error"), status)
}

func geminiError(e object, status int) {
	if code := e.count("code"); status != 0 && code != status {
		e.bad("code", "%d, but the HTTP status is %d", code, status)
	}
	e.nonEmptyText("message")
	if s := e.nonEmptyText("status"); strings.ToUpper(s) != s {
		e.bad("status", "%q is not the name of a status", s)
	}
	if e.has("details") {
		for _, d := range e.objects("details") {
			d.nonEmptyText("@type")
		}
	}
}

func geminiWhole(r object) {
	s := geminiStream{whole: true}
	s.chunk(r)
	if r.c.err == nil {
		if err := s.end(); err != nil {
			r.bad("", "%v", err)
		}
	}
}

// geminiStream is the state of a stream. A whole response is a stream of one chunk.
type geminiStream struct {
	base
	whole      bool
	id, model  string
	candidates []*geminiCandidate
	usage      bool // the last chunk had usage
	calls      ids
}

type geminiCandidate struct {
	finished bool
	// streaming: a call with streamed arguments is open.
	streaming bool
}

func (s *geminiStream) next(n int, _ string, data []byte) error {
	c := s.check("chunk", n, "")
	s.open(c)
	r := c.root(data)
	switch {
	case c.err != nil:
	case r.has("error"):
		geminiError(r.obj("error"), 0)
		s.finished = "an error"
	default:
		s.chunk(r)
	}
	return c.err
}

func (s *geminiStream) end() error {
	if s.finished != "" {
		return nil
	}
	if len(s.candidates) == 0 {
		return errors.New("no candidates and no promptFeedback")
	}
	for i, c := range s.candidates {
		switch {
		case !c.finished:
			return fmt.Errorf("candidate %d has no finishReason", i)
		case c.streaming && !s.passThrough:
			return fmt.Errorf("candidate %d ends inside a call", i)
		}
	}
	if !s.usage && !s.passThrough {
		return errors.New("usageMetadata: missing at the end")
	}
	return nil
}

func (s *geminiStream) chunk(r object) {
	id, model := r.named("responseId"), r.named("modelVersion")
	if s.id == "" {
		s.id, s.model = id, model
	}
	if id != s.id || model != s.model {
		r.value("", "responseId or modelVersion differ from those of the first chunk")
	}
	s.usage = false
	if u, ok := r.objOrNull("usageMetadata"); ok {
		s.usage = true
		geminiUsage(u)
	}
	if f, ok := r.objOrNull("promptFeedback"); ok && f.has("blockReason") {
		f.nonEmptyText("blockReason")
		s.finished = "a blocked prompt"
		if r.has("candidates") || len(s.candidates) > 0 {
			r.value("candidates", "together with a blocked prompt")
		}
	}
	if !r.has("candidates") {
		if s.finished == "" && !(s.usage && s.allFinished()) {
			r.bad("candidates", "missing")
		}
		return
	}
	list := r.objects("candidates")
	if len(list) == 0 {
		r.bad("candidates", "empty: omit the field")
	}
	for _, c := range list {
		s.candidate(c)
	}
}

func (s *geminiStream) allFinished() bool {
	for _, c := range s.candidates {
		if !c.finished {
			return false
		}
	}
	return len(s.candidates) > 0
}

func geminiUsage(u object) {
	sum := 0
	for _, k := range []string{"promptTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"} {
		if u.has(k) {
			sum += u.tokens(k)
		}
	}
	prompt := 0
	if u.has("promptTokenCount") {
		prompt = u.tokens("promptTokenCount")
	}
	u.counts("cachedContentTokenCount")
	u.partOf("cachedContentTokenCount", prompt, "prompt") // thoughts are not part of the candidates
	total := 0                                            // a count of 0 may be omitted
	if u.has("totalTokenCount") {
		total = u.tokens("totalTokenCount")
	}
	if total != sum {
		u.value("totalTokenCount", "%d, but the sum of the other counts is %d", total, sum)
	}
}

func (s *geminiStream) candidate(c object) {
	i := 0
	if c.has("index") {
		i = c.count("index")
	}
	if i >= maxChoices {
		c.bad("index", "%d, want at most %d", i, maxChoices)
		return
	}
	for len(s.candidates) <= i {
		s.candidates = append(s.candidates, &geminiCandidate{}) // candidates may come in any order
	}
	state := s.candidates[i]
	if state.finished {
		c.bad("", "candidate %d continues after its finishReason", i)
	}
	content := c.obj("content")
	content.is("role", "model")
	parts := content.objects("parts")
	if len(parts) == 0 {
		content.bad("parts", "empty")
	}
	for _, p := range parts {
		s.part(state, p)
	}
	if c.has("finishReason") {
		c.word("finishReason", geminiFinishes...)
		state.finished = true
	}
}

func (s *geminiStream) part(state *geminiCandidate, p object) {
	data := ""
	for _, k := range geminiData {
		if !p.has(k) {
			continue
		}
		if data != "" {
			p.bad(k, "together with %s; a part has only one of them", data)
		}
		data = k
	}
	if p.has("thought") {
		p.flag("thought")
	}
	if p.has("thoughtSignature") {
		if _, err := base64.StdEncoding.DecodeString(p.nonEmptyText("thoughtSignature")); err != nil {
			p.value("thoughtSignature", "not base64: %v", err)
		}
	}
	if state.streaming && data != "functionCall" {
		p.value("", "inside a call with streamed arguments")
	}
	switch data {
	case "":
		if !p.has("thoughtSignature") {
			p.value("", "a part without data") // a passed-through part may be of an unknown kind
		}
	case "text":
		p.str("text")
	case "functionCall":
		s.call(state, p.obj("functionCall"))
	case "inlineData":
		d := p.obj("inlineData")
		d.nonEmptyText("mimeType")
		d.nonEmptyText("data")
	default:
		p.obj(data)
	}
}

// call checks a call, whole or with streamed arguments like Vertex.
func (s *geminiStream) call(state *geminiCandidate, f object) {
	goesOn := f.has("willContinue") && f.flag("willContinue")
	if state.streaming {
		if f.has("name") || f.has("args") {
			f.bad("", "a call begins inside another")
		}
	} else {
		f.called()
		if f.has("id") {
			s.calls.add(f, "id")
		}
		if f.has("args") {
			f.obj("args")
		}
	}
	if s.whole && goesOn {
		f.bad("willContinue", "in a response that is not streamed")
	}
	state.streaming = goesOn
}

func geminiCall(rest string, array bool) expectation {
	a := expectation{dialect: dialectname.Gemini}
	i := strings.LastIndexByte(rest, ':')
	if i < 0 {
		return a
	}
	a.model = strings.TrimPrefix(rest[:i], "models/")
	switch rest[i+1:] {
	case "generateContent":
		a.form = whole
	case "streamGenerateContent":
		a.form, a.array = streamed, array
	case "countTokens":
		a.form, a.rules = listed, func(o object) { o.count("totalTokens") }
	}
	return a
}
