package sim

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/text/lark"
)

// candidate is a tool that may be called, with the words that speak of it.
type candidate struct {
	spec  *dragoman.ToolSpec
	words []string // of its name, as they are
	// The others are stems.
	name, description, parameters, kin wordSet
	// same says of how many tools each word speaks; all share it.
	same map[string]int
}

// wordSet are words, each once.
type wordSet map[string]bool

func setOf(words []string) wordSet {
	out := make(wordSet, len(words))
	for _, w := range words {
		out[w] = true
	}
	return out
}

// speaksOf reports whether a stem is one of the tool's.
func (c *candidate) speaksOf(w string) bool {
	return c.name[w] || c.description[w] || c.parameters[w] || c.kin[w]
}

// The bounds of what is looked at: how many tools, and how much of what each says
// of itself.
const (
	maxCandidateTools = 4 << 10
	maxSaidOfTool     = 8 << 10
)

// candidatesOf are the tools that the request's choice allows.
func candidatesOf(req *dragoman.Request) []*candidate {
	var out []*candidate
	same := map[string]int{}
	for i := range req.Tools {
		t := &req.Tools[i]
		if t.Kind == codes.ToolHosted || !allowed(req.ToolChoice, t) || t.Name == outputReader && !mentioned(req.Messages, outputReader) {
			continue
		}
		if len(out) == maxCandidateTools {
			break
		}
		c := &candidate{
			spec: t, words: wordsOf(t.Name), name: wordSet{}, same: same,
			description: setOf(stems(head(t.Description, maxSaidOfTool))), parameters: setOf(parameterStems(t.Parameters)),
		}
		for _, w := range wordsOf(t.Namespace + " " + t.Name) {
			c.name[stem(w)] = true
		}
		c.kin = setOf(kinOf(func(w string) bool { return c.name[w] || c.description[w] }))
		c.count()
		out = append(out, c)
	}
	return out
}

// outputReader is the tool that reads long outputs. The planner does not call it until an
// output or the user mentions it.
const outputReader = "read_tool_output"

// mentioned reports whether a text or a result of the conversation contains a name.
func mentioned(messages []dragoman.Message, name string) bool {
	for i := range messages {
		for _, p := range messages[i].Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				if strings.Contains(p.Text, name) {
					return true
				}
			case *dragoman.ToolResult:
				if strings.Contains(p.Text(), name) {
					return true
				}
			}
		}
	}
	return false
}

// count says of each word of a tool that it speaks of one more.
func (c *candidate) count() {
	counted := wordSet{}
	for _, set := range []wordSet{c.name, c.description, c.parameters, c.kin} {
		for w := range set {
			if !counted[w] {
				counted[w] = true
				c.same[w]++
			}
		}
	}
}

// allowed reports whether a choice lets the model call a tool.
func allowed(choice *dragoman.ToolChoice, t *dragoman.ToolSpec) bool {
	if choice == nil {
		return true
	}
	if choice.Mode == dragoman.ChoiceNone {
		return false
	}
	return choice.Tools == nil || slices.ContainsFunc(choice.Tools, func(ref dragoman.ToolRef) bool {
		return ref.Name == t.Name && ref.Namespace == t.Namespace
	})
}

// parameterStems are the words of a schema's properties and enums.
func parameterStems(src json.RawMessage) []string {
	root, err := parseTree(src)
	if err != nil {
		return nil
	}
	flat := flattener{root: root}.flat(root)
	properties := objectAt(flat, "properties")
	if properties == nil {
		return nil
	}
	var b strings.Builder
	for _, name := range properties.keys {
		if b.Len() > maxSaidOfTool {
			break
		}
		b.WriteString(name + " ")
		list, _ := at(properties.get(name), "enum").([]any)
		for _, e := range list {
			if word, ok := e.(string); ok && b.Len() <= maxSaidOfTool {
				b.WriteString(word + " ")
			}
		}
	}
	return stems(head(b.String(), maxSaidOfTool))
}

// heard is a text, taken apart once for all tools.
type heard struct {
	words, stems []string
	// first is the stem of the first word that says something.
	first string
}

func hear(text string) heard {
	h := heard{words: wordsOf(text), stems: stems(text)}
	for _, w := range h.words {
		if !isStopWord(w) {
			h.first = stem(w)
			break
		}
	}
	return h
}

// names reports whether a text names a tool that is called by one word: it begins with
// the word ("Read notes.txt"), or says what it is ("the tool read", "the Read tool").
func (h heard) names(word string) bool {
	for i, w := range h.words {
		if w != word {
			continue
		}
		if i == 0 || h.words[i-1] == "tool" || i+1 < len(h.words) && h.words[i+1] == "tool" {
			return true
		}
	}
	return false
}

// enoughWords is the score from which on a tool is called.
const enoughWords = 2

// score says how much a text speaks of a tool. A word that speaks of several of
// the tools counts less for each.
func (c *candidate) score(h heard) float64 {
	total := 0.0
	if inOrder(h.words, c.words) && (strings.ContainsAny(c.spec.Name, "_-.") || len(c.words) > 1) {
		total += 10
	}
	if len(c.words) == 1 && h.names(c.words[0]) {
		total += 5
	}
	for _, w := range h.stems {
		weight := 0.0
		switch {
		case c.name[w] && isCommonVerb(w) && h.first != w:
			weight = 1
		case c.name[w]:
			weight = 3
		case c.kin[w]:
			weight = 2
		case c.speaksOf(w):
			weight = 1
		default:
			continue
		}
		total += weight / float64(max(1, min(c.same[w], 3)))
	}
	return total
}

// best is the tool that a text speaks of most, the first of equals; nil where it
// speaks of none.
func best(text string, all []*candidate) *candidate {
	var found *candidate
	most := 0.0
	h := hear(text)
	for _, c := range all {
		if s := c.score(h); s > most && s*3 >= enoughWords {
			found, most = c, s
		}
	}
	if found == nil || most < enoughWords && !sure(h, found) {
		return nil
	}
	return found
}

// sure reports whether a text has a word of a tool's name that is no common one,
// or is what the text tells to do.
func sure(h heard, c *candidate) bool {
	return slices.ContainsFunc(h.stems, func(w string) bool {
		return c.name[w] && (!isCommonVerb(w) || h.first == w)
	})
}

// saysNothingNew reports whether a piece that speaks of a tool with arguments names
// no value for any of them.
func saysNothingNew(piece string, c *candidate) bool {
	if len(c.parameters) == 0 {
		return false
	}
	// What begins a sentence is capital without being a name.
	return len(valuesIn(strings.ToLower(firstWord(piece))+strings.TrimPrefix(piece, firstWord(piece)), func(string) bool { return true }).all) == 0
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// segment is a piece of the prompt that speaks of one tool.
type segment struct {
	tool *candidate
	text string
}

// breaks are where one wish may end and another begin.
var breaks = regexp.MustCompile(`[.;!?](?:\s+|$)|\n+|,\s*(?:and\s+)?(?:then\s+)?|\s+and\s+(?:then\s+|also\s+)?|\s+then\s+`)

// segments cuts a prompt into the pieces that speak of different tools, or of one
// again. What speaks of none belongs to the piece before it.
func segments(prompt string, all []*candidate) []segment {
	var out []segment
	start := 0      // of the piece being read
	var lead string // what came before the first tool
	add := func(end, next int) {
		piece := prompt[start:end]
		tool := best(piece, all)
		if len(out) > 0 && tool == out[len(out)-1].tool && saysNothingNew(piece, tool) {
			tool = nil // the same wish in other words
		}
		switch {
		case tool != nil:
			out = append(out, segment{tool, lead + piece})
			lead = ""
		case len(out) == 0:
			lead += prompt[start:next]
		}
		if len(out) > 0 {
			last := &out[len(out)-1]
			if tool == nil {
				last.text += piece
			}
			last.text += prompt[end:next]
		}
		start = next
	}
	for _, m := range breaks.FindAllStringIndex(prompt, -1) {
		if !inQuotes(prompt, m[0]) {
			add(m[0], m[1])
		}
	}
	add(len(prompt), len(prompt))
	if len(out) == 0 {
		if tool := best(prompt, all); tool != nil {
			out = append(out, segment{tool, prompt})
		}
	}
	for i := range out {
		out[i].text = strings.TrimSpace(out[i].text)
	}
	return out
}

// inQuotes reports whether a place of a text stands within quotes.
func inQuotes(text string, at int) bool {
	line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
	return strings.Count(line, `"`)%2 == 1 || strings.Count(line, "`")%2 == 1 || strings.Count(line, "“") > strings.Count(line, "”")
}

// wanted are the calls that the prompt asks for, in its order. unfilled are tools
// that would have been called if there were arguments for them.
func wanted(req *dragoman.Request, ex exchange) (calls []*dragoman.ToolCall, unfilled []string) {
	all := candidatesOf(req)
	if len(all) == 0 {
		return nil, nil
	}
	pieces := segments(ex.prompt, all)
	if len(pieces) == 0 && forced(req.ToolChoice) {
		pieces = []segment{{fallback(all), ex.prompt}}
	}
	for _, piece := range pieces[:min(len(pieces), 2*maxCalls)] {
		if len(calls) == maxCalls {
			break
		}
		more, ok := piece.calls(all)
		if !ok {
			unfilled = append(unfilled, piece.tool.spec.QualifiedName())
		}
		for _, c := range more {
			same := func(o *dragoman.ToolCall) bool {
				return o.QualifiedName() == c.QualifiedName() && o.Arguments == c.Arguments
			}
			if len(calls) < maxCalls && !slices.ContainsFunc(calls, same) {
				calls = append(calls, c)
			}
		}
	}
	return calls, unfilled
}

func forced(choice *dragoman.ToolChoice) bool {
	return choice != nil && (choice.Mode == dragoman.ChoiceRequired || choice.Mode == dragoman.ChoiceTool)
}

// fallback is the tool to call where one must be and none was spoken of: the
// first that is not deferred.
func fallback(all []*candidate) *candidate {
	for _, c := range all {
		if !c.spec.Deferred {
			return c
		}
	}
	return all[0]
}

// calls are those of a segment: one, and one for each further value of a list.
func (s segment) calls(all []*candidate) (calls []*dragoman.ToolCall, ok bool) {
	known := func(word string) bool {
		return slices.ContainsFunc(all, func(c *candidate) bool {
			return c.name[stem(word)] || c.kin[stem(word)]
		})
	}
	said := valuesIn(s.text, known)
	if s.tool.spec.Kind == codes.ToolFreeform {
		return []*dragoman.ToolCall{newCall(s.tool.spec, freeInput(s.tool.spec.Grammar, said))}, true
	}
	args, ok := fillObject(s.tool.spec.Parameters, said)
	if !ok {
		return nil, false
	}
	calls = append(calls, newCall(s.tool.spec, string(args)))
	for _, more := range said.further() {
		if args, ok := fillObject(s.tool.spec.Parameters, more); ok {
			calls = append(calls, newCall(s.tool.spec, string(args)))
		}
	}
	return calls, true
}

// further are the values of a text once more for each value that it lists behind
// the one that was used, and did not use itself: that one takes its place.
func (v *values) further() []*values {
	var out []*values
	for i, first := range v.all {
		if !first.used {
			continue
		}
		for _, more := range v.listedAfter(first) {
			if more.used {
				return nil
			}
			again := &values{text: v.text}
			for j, o := range v.all {
				switch {
				case j == i:
					swapped := *first
					swapped.text = more.text
					again.all = append(again.all, &swapped)
				case o.used:
					kept := *o
					again.all = append(again.all, &kept)
				}
			}
			out = append(out, again)
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

func newCall(t *dragoman.ToolSpec, arguments string) *dragoman.ToolCall {
	c := &dragoman.ToolCall{Name: t.Name, Namespace: t.Namespace, Arguments: arguments}
	if t.Kind == codes.ToolFreeform {
		c.Payload = codes.PayloadText
	}
	return c
}

// freeInput is the input of a freeform tool: what was said in quotes, or all of
// it; where a grammar does not take that, an example of the grammar.
func freeInput(g *dragoman.Grammar, said *values) string {
	text := said.text
	if val := said.take(quoted); val != nil {
		text = val.text
	}
	if g == nil {
		return text
	}
	switch g.Syntax {
	case "regex":
		if re, err := regexp.Compile(`^(?:` + g.Definition + `)$`); err == nil && re.MatchString(text) {
			return text
		}
		if example, err := lark.ExampleOf(g.Definition); err == nil {
			return example
		}
	case "lark":
		compiled, err := lark.Compile(g.Definition)
		if err != nil {
			return text
		}
		if compiled.Match(text) == nil {
			return text
		}
		if example, err := compiled.Example(); err == nil {
			return example
		}
	}
	return text
}
