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

// candidate is a tool that may be called, with the words that describe it.
type candidate struct {
	spec  *dragoman.ToolSpec
	words []string // words of the name
	// The following sets hold stems.
	name, description, parameters, synonyms wordSet
	// same counts the tools that each stem describes. All candidates share it.
	same map[string]int
}

// wordSet is a set of words.
type wordSet map[string]bool

func setOf(words []string) wordSet {
	out := make(wordSet, len(words))
	for _, w := range words {
		out[w] = true
	}
	return out
}

// hasWord reports whether a stem describes the tool.
func (c *candidate) hasWord(w string) bool {
	return c.name[w] || c.description[w] || c.parameters[w] || c.synonyms[w]
}

// The limits of what is analyzed: the number of tools, and the size of their descriptions.
const (
	maxCandidateTools = 4 << 10
	maxToolText       = 8 << 10
)

// candidatesOf returns the tools that the request's tool choice allows.
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
			description: setOf(stems(head(t.Description, maxToolText))), parameters: setOf(parameterStems(t.Parameters)),
		}
		for _, w := range wordsOf(t.Namespace + " " + t.Name) {
			c.name[stem(w)] = true
		}
		c.synonyms = setOf(synonymsOf(func(w string) bool { return c.name[w] || c.description[w] }))
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

// count adds the tool to the counts of its words.
func (c *candidate) count() {
	counted := wordSet{}
	for _, set := range []wordSet{c.name, c.description, c.parameters, c.synonyms} {
		for w := range set {
			if !counted[w] {
				counted[w] = true
				c.same[w]++
			}
		}
	}
}

// allowed reports whether a tool choice lets the model call a tool.
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

// parameterStems returns the stems of the properties and enums of a schema.
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
		if b.Len() > maxToolText {
			break
		}
		b.WriteString(name + " ")
		list, _ := at(properties.get(name), "enum").([]any)
		for _, e := range list {
			if word, ok := e.(string); ok && b.Len() <= maxToolText {
				b.WriteString(word + " ")
			}
		}
	}
	return stems(head(b.String(), maxToolText))
}

// parsedText is a text split into words, once for all tools.
type parsedText struct {
	words, stems []string
	// first is the stem of the first word that is not a stop word.
	first string
}

func parseText(text string) parsedText {
	h := parsedText{words: wordsOf(text), stems: stems(text)}
	for _, w := range h.words {
		if !isStopWord(w) {
			h.first = stem(w)
			break
		}
	}
	return h
}

// names reports whether a text names a tool whose name is one word: it begins with the word
// ("Read notes.txt"), or calls it a tool ("the tool read", "the Read tool").
func (h parsedText) names(word string) bool {
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

// enoughWords is the minimum score for a call.
const enoughWords = 2

// score returns how well a text matches a tool. A word that describes several tools counts
// less for each of them.
func (c *candidate) score(h parsedText) float64 {
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
		case c.synonyms[w]:
			weight = 2
		case c.hasWord(w):
			weight = 1
		default:
			continue
		}
		total += weight / float64(max(1, min(c.same[w], 3)))
	}
	return total
}

// bestMatch returns the tool that a text matches best, the first of equals, or nil.
func bestMatch(text string, all []*candidate) *candidate {
	var found *candidate
	most := 0.0
	h := parseText(text)
	for _, c := range all {
		if s := c.score(h); s > most && s*3 >= enoughWords {
			found, most = c, s
		}
	}
	if found == nil || most < enoughWords && !isConfident(h, found) {
		return nil
	}
	return found
}

// isConfident reports whether a text has an uncommon word of a tool's name, or begins with a word of
// it as a command.
func isConfident(h parsedText, c *candidate) bool {
	return slices.ContainsFunc(h.stems, func(w string) bool {
		return c.name[w] && (!isCommonVerb(w) || h.first == w)
	})
}

// hasNoValues reports whether a piece of the prompt matches a tool with arguments, but
// contains no value for any of them.
func hasNoValues(piece string, c *candidate) bool {
	if len(c.parameters) == 0 {
		return false
	}
	// The first word of a sentence is capitalized without being a name.
	return len(valuesIn(strings.ToLower(firstWord(piece))+strings.TrimPrefix(piece, firstWord(piece)), func(string) bool { return true }).all) == 0
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// segment is a piece of the prompt that is about one tool.
type segment struct {
	tool *candidate
	text string
}

// breaks matches the places where one request of the user may end and another begin.
var breaks = regexp.MustCompile(`[.;!?](?:\s+|$)|\n+|,\s*(?:and\s+)?(?:then\s+)?|\s+and\s+(?:then\s+|also\s+)?|\s+then\s+`)

// segments splits a prompt into pieces that are about different tools, or about one tool
// again. A piece that matches no tool belongs to the piece before it. A piece without values
// may contain the text of a neighbor: see shareValues.
func segments(prompt string, all []*candidate) []segment {
	var out []segment
	start := 0      // start of the current piece
	var lead string // text before the first tool
	add := func(end, next int) {
		piece := prompt[start:end]
		tool := bestMatch(piece, all)
		if len(out) > 0 && tool == out[len(out)-1].tool && hasNoValues(piece, tool) {
			tool = nil // the same request in other words
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
		if tool := bestMatch(prompt, all); tool != nil {
			out = append(out, segment{tool, prompt})
		}
	}
	for i := range out {
		out[i].text = strings.TrimSpace(out[i].text)
	}
	return shareValues(out)
}

// shareValues gives a piece without values those of the piece after or before it, if both tools
// require a parameter of the same name: "the weather and the time in Oslo".
func shareValues(pieces []segment) []segment {
	out := slices.Clone(pieces)
	for i, piece := range pieces {
		if !hasNoValues(piece.text, piece.tool) {
			continue
		}
		for _, j := range []int{i + 1, i - 1} {
			if j < 0 || j >= len(pieces) || hasNoValues(pieces[j].text, pieces[j].tool) {
				continue
			}
			required := requiredParameters(pieces[j].tool.spec)
			if slices.ContainsFunc(requiredParameters(piece.tool.spec), func(name string) bool { return slices.Contains(required, name) }) {
				out[i].text += " " + pieces[j].text
				break
			}
		}
	}
	return out
}

// requiredParameters returns the names of the parameters that a tool requires.
func requiredParameters(t *dragoman.ToolSpec) []string {
	root, err := parseTree(t.Parameters)
	if err != nil {
		return nil
	}
	f := filler{flattener: flattener{root: root}}
	flat := f.flat(root)
	if flat == nil {
		return nil
	}
	return f.requiredOf(flat)
}

// inQuotes reports whether a position of a text is within quotes.
func inQuotes(text string, at int) bool {
	line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
	return strings.Count(line, `"`)%2 == 1 || strings.Count(line, "`")%2 == 1 || strings.Count(line, "“") > strings.Count(line, "”")
}

// wanted returns the calls that the prompt asks for, in order. unfilled lists the tools that
// it did not call because it found no arguments.
func wanted(req *dragoman.Request, turn userTurn) (calls []*dragoman.ToolCall, unfilled []string) {
	all := candidatesOf(req)
	if len(all) == 0 {
		return nil, nil
	}
	pieces := segments(turn.prompt, all)
	if len(pieces) == 0 && forced(req.ToolChoice) {
		pieces = []segment{{fallback(all), turn.prompt}}
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

// fallback returns the tool to call if a call is required but the prompt matches none: the
// first that is not deferred.
func fallback(all []*candidate) *candidate {
	for _, c := range all {
		if !c.spec.Deferred {
			return c
		}
	}
	return all[0]
}

// calls returns the calls of a segment: one, and one for each further value of a list.
func (s segment) calls(all []*candidate) (calls []*dragoman.ToolCall, ok bool) {
	known := func(word string) bool {
		return slices.ContainsFunc(all, func(c *candidate) bool {
			return c.name[stem(word)] || c.synonyms[stem(word)]
		})
	}
	given := valuesIn(s.text, known)
	if s.tool.spec.Kind == codes.ToolFreeform {
		return []*dragoman.ToolCall{newCall(s.tool.spec, freeInput(s.tool.spec.Grammar, given))}, true
	}
	args, ok := fillObject(s.tool.spec.Parameters, given)
	if !ok {
		return nil, false
	}
	calls = append(calls, newCall(s.tool.spec, string(args)))
	for _, more := range given.withNextListed() {
		if args, ok := fillObject(s.tool.spec.Parameters, more); ok {
			calls = append(calls, newCall(s.tool.spec, string(args)))
		}
	}
	return calls, true
}

// withNextListed returns a copy of the values for each unused value that the text lists after a used
// one. In the copy, the listed value replaces the used one.
func (v *values) withNextListed() []*values {
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

// freeInput returns the input of a freeform tool: the quoted text of the prompt, or all of
// it. If the grammar does not accept that, it returns an example of the grammar.
func freeInput(g *dragoman.Grammar, given *values) string {
	text := given.text
	if val := given.take(quoted); val != nil {
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
