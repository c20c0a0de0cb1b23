package lark

import (
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// common are the terminals of Lark's own library that grammars import.
var common = map[string]string{
	"DIGIT": `[0-9]`, "HEXDIGIT": `[a-fA-F0-9]`, "INT": `[0-9]+`, "SIGNED_INT": `[+-]?[0-9]+`,
	"DECIMAL": `[0-9]+\.[0-9]*|\.[0-9]+`, "FLOAT": `[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?`,
	"SIGNED_FLOAT":   `[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)`,
	"NUMBER":         `(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+(?:[eE][+-]?[0-9]+)?`,
	"SIGNED_NUMBER":  `[+-]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+(?:[eE][+-]?[0-9]+)?)`,
	"ESCAPED_STRING": `"(?:[^"\\\n]|\\.)*"`,
	"LCASE_LETTER":   `[a-z]`, "UCASE_LETTER": `[A-Z]`, "LETTER": `[a-zA-Z]`, "WORD": `[a-zA-Z]+`,
	"CNAME":     `[_a-zA-Z][_a-zA-Z0-9]*`,
	"WS_INLINE": `[ \t]+`, "WS": `[ \t\f\r\n]+`, "CR": `\r`, "LF": `\n`, "NEWLINE": `(?:\r?\n)+`,
	"SH_COMMENT": `#[^\n]*`, "CPP_COMMENT": `//[^\n]*`, "C_COMMENT": `/\*(?:[^*]|\*+[^*/])*\*+/`, "SQL_COMMENT": `--[^\n]*`,
}

// Compile compiles a grammar. Its language begins at the rule "start".
func Compile(src string) (*Grammar, error) {
	if len(src) > MaxGrammarBytes {
		return nil, fmt.Errorf("%w: %d bytes, more than %d", ErrTooLarge, len(src), MaxGrammarBytes)
	}
	tokens, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := parser{tokens: tokens, rules: map[string]expr{}, terminals: map[string]expr{}}
	p.file()
	if p.err != nil {
		return nil, p.err
	}
	c := compiler{parser: &p, g: &Grammar{start: "start", byName: map[string][]int{}}, places: map[string]int{}}
	if err := c.grammar(); err != nil {
		return nil, err
	}
	return c.g, nil
}

func wrong(line int, format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrGrammar, line, fmt.Sprintf(format, args...))
}

// token is a token of the grammar.
type token struct {
	kind tokenKind
	text string
	line int
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenNewline
	tokenName
	tokenString
	tokenRegexp
	tokenNumber
	tokenDirective
	tokenMark // one of the marks, or .. or ->
)

// words are the tokens of the language, each as an expression.
var words = []struct {
	kind tokenKind
	re   *regexp.Regexp
}{
	{tokenNewline, regexp.MustCompile(`^\r?\n`)},
	{tokenName, regexp.MustCompile(`^[?!]?[_a-zA-Z][_a-zA-Z0-9]*`)},
	{tokenString, regexp.MustCompile(`^"(?:[^"\\\n]|\\.)*"i?`)},
	{tokenRegexp, regexp.MustCompile(`^/(?:[^/\\\n]|\\.)+/[imslux]*`)},
	{tokenNumber, regexp.MustCompile(`^[0-9]+`)},
	{tokenDirective, regexp.MustCompile(`^%[a-z]+`)},
	{tokenMark, regexp.MustCompile(`^(?:\.\.|->|[:|()\[\]?*+~.,{}])`)},
}

var blank = regexp.MustCompile(`^(?:[ \t\f]+|//[^\n]*)`)

func lex(src string) ([]token, error) {
	var out []token
	line := 1
next:
	for src != "" {
		if b := blank.FindString(src); b != "" {
			src = src[len(b):]
			continue
		}
		for _, w := range words {
			text := w.re.FindString(src)
			if text == "" {
				continue
			}
			out = append(out, token{w.kind, text, line})
			if w.kind == tokenNewline {
				line++
			}
			src = src[len(text):]
			continue next
		}
		return nil, wrong(line, "unexpected %q", first(src))
	}
	return append(out, token{tokenEnd, "", line}), nil
}

func first(s string) string {
	for i := range s {
		if i >= 10 {
			return s[:i]
		}
	}
	return s
}

// expr is the right side of a definition.
type expr any

type (
	alternatives []expr
	sequence     []expr
	repeated     struct {
		of       expr
		min, max int // max < 0 means any number
	}
	reference struct {
		name string
		line int
	}
	literal struct {
		regexp string // an expression
		shown  string
		line   int
	}
)

type parser struct {
	tokens    []token
	rules     map[string]expr
	terminals map[string]expr
	order     []string // of rules
	ignored   []expr
	depth     int
	err       error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = wrong(p.tokens[0].line, format, args...)
	}
}

func (p *parser) take() token {
	t := p.tokens[0]
	if t.kind != tokenEnd {
		p.tokens = p.tokens[1:]
	}
	return t
}

// mark consumes a mark if it is next.
func (p *parser) mark(text string) bool {
	if t := p.tokens[0]; t.kind == tokenMark && t.text == text {
		p.take()
		return true
	}
	return false
}

func (p *parser) want(text string) {
	if !p.mark(text) {
		p.fail("expected %q, found %q", text, p.tokens[0].text)
	}
}

func (p *parser) file() {
	for p.err == nil {
		switch t := p.take(); t.kind {
		case tokenEnd:
			return
		case tokenNewline:
		case tokenDirective:
			p.directive(t)
		case tokenName:
			p.definition(t)
		default:
			p.fail("expected a definition, found %q", t.text)
		}
	}
}

func isTerminal(name string) bool {
	for _, r := range name {
		if unicode.IsLetter(r) {
			return unicode.IsUpper(r)
		}
	}
	return false
}

func (p *parser) definition(t token) {
	name := strings.TrimLeft(t.text, "?!")
	if p.mark("{") {
		p.fail("%s is a template, which is not supported", name)
		return
	}
	if p.mark(".") { // a priority selects a parse; it does not affect whether there is one
		if p.take().kind != tokenNumber {
			p.fail("expected the priority of %s", name)
		}
	}
	p.want(":")
	p.newlines()
	e := p.alternatives()
	into := p.rules
	if isTerminal(name) {
		into = p.terminals
	} else if _, twice := into[name]; !twice {
		p.order = append(p.order, name)
	}
	if _, twice := into[name]; twice {
		p.fail("%s is defined twice", name)
	}
	into[name] = e
}

func (p *parser) directive(t token) {
	switch t.text {
	case "%ignore":
		p.ignored = append(p.ignored, p.alternatives())
	case "%import":
		p.imports()
	default:
		p.fail("%s is not supported", t.text)
	}
}

// imports reads what follows %import: common.A, common.A -> B, common (A, B).
func (p *parser) imports() {
	if from := p.take(); from.text != "common" {
		p.fail("only Lark's common terminals can be imported, not %q", from.text)
		return
	}
	add := func(name, as string) {
		re, known := common[name]
		if !known {
			p.fail("common has no %q", name)
			return
		}
		p.terminals[as] = literal{re, as, p.tokens[0].line}
	}
	if p.mark("(") {
		for p.err == nil {
			name := p.take().text
			add(name, name)
			if p.mark(")") {
				return
			}
			p.want(",")
		}
		return
	}
	p.want(".")
	name := p.take().text
	as := name
	if p.mark("->") {
		as = p.take().text
	}
	add(name, as)
}

func (p *parser) newlines() {
	for p.tokens[0].kind == tokenNewline {
		p.take()
	}
}

// alternatives reads up to the end of the definition or of the bracket. A new line that
// begins with | continues it.
func (p *parser) alternatives() expr {
	if p.depth++; p.depth > maxDepth {
		p.fail("nested too deeply")
		return nil
	}
	defer func() { p.depth-- }()
	out := alternatives{p.sequence()}
	for p.err == nil {
		rest := p.tokens
		p.newlines()
		if !p.mark("|") {
			if p.depth == 1 {
				p.tokens = rest
			}
			break
		}
		p.newlines()
		out = append(out, p.sequence())
	}
	return out
}

func (p *parser) sequence() expr {
	var out sequence
	for p.err == nil {
		if p.depth > 1 {
			p.newlines() // inside of brackets, line ends have no meaning
		}
		t := p.tokens[0]
		switch {
		case t.kind == tokenMark && (t.text == "(" || t.text == "["):
			out = append(out, p.repeat(p.group()))
		case t.kind == tokenString || t.kind == tokenRegexp || t.kind == tokenName:
			out = append(out, p.repeat(p.atom()))
		case p.mark("->"):
			p.take() // the name of a tree node
		default:
			return out
		}
	}
	return out
}

func (p *parser) group() expr {
	open := p.take().text
	e := p.alternatives()
	p.newlines()
	if open == "[" {
		p.want("]")
		return repeated{e, 0, 1}
	}
	p.want(")")
	return e
}

func (p *parser) atom() expr {
	t := p.take()
	switch t.kind {
	case tokenName:
		return reference{strings.TrimLeft(t.text, "?!"), t.line}
	case tokenRegexp:
		end := strings.LastIndexByte(t.text, '/')
		re, flags := strings.ReplaceAll(t.text[1:end], `\/`, "/"), strings.Map(keptFlag, t.text[end+1:])
		if strings.Contains(t.text[end:], "x") {
			p.fail("the flag x of %s is not supported", t.text)
		}
		if flags != "" {
			re = "(?" + flags + ":" + re + ")"
		}
		return literal{re, t.text, t.line}
	default:
		from, ok := unquote(t.text)
		if !ok {
			p.fail("%s is not a valid string", t.text)
		}
		if p.mark("..") {
			to, ok := unquote(p.take().text)
			if !ok || len([]rune(from)) != 1 || len([]rune(to)) != 1 {
				p.fail("a range must be from one character to another")
			}
			return literal{"[" + regexp.QuoteMeta(from) + "-" + regexp.QuoteMeta(to) + "]", t.text + ".." + strconv.Quote(to), t.line}
		}
		re := regexp.QuoteMeta(from)
		if strings.HasSuffix(t.text, "i") {
			re = "(?i:" + re + ")"
		}
		return literal{re, t.text, t.line}
	}
}

// keptFlag drops the flags that have no effect here.
func keptFlag(r rune) rune {
	if r == 'i' || r == 'm' || r == 's' {
		return r
	}
	return -1
}

func unquote(quoted string) (string, bool) {
	s, err := strconv.Unquote(strings.TrimSuffix(quoted, "i"))
	return s, err == nil && strings.HasPrefix(quoted, `"`)
}

func (p *parser) repeat(e expr) expr {
	switch {
	case p.mark("?"):
		return repeated{e, 0, 1}
	case p.mark("*"):
		return repeated{e, 0, -1}
	case p.mark("+"):
		return repeated{e, 1, -1}
	case p.mark("~"):
		least, err := strconv.Atoi(p.take().text)
		most := least
		if err == nil && p.mark("..") {
			most, err = strconv.Atoi(p.take().text)
		}
		if err != nil || least > most || most > maxSymbols {
			p.fail("a repetition must be ~n or ~n..m")
		}
		return repeated{e, least, most}
	}
	return e
}

// compiler converts parsed definitions to rules that are plain sequences.
type compiler struct {
	*parser
	g       *Grammar
	places  map[string]int // indexes of terminals, by expression
	symbols int
	fresh   int
}

func (c *compiler) grammar() error {
	if _, ok := c.rules["start"]; !ok {
		return wrong(1, "no rule named start")
	}
	for _, name := range c.order {
		if err := c.define(name, c.rules[name]); err != nil {
			return err
		}
	}
	c.g.ignored = -1
	if len(c.ignored) > 0 {
		re, _, err := c.regexp(repeated{alternatives(c.ignored), 0, -1}, nil)
		if err != nil {
			return err
		}
		if c.g.ignored, err = c.terminal(re, "%ignore", 1); err != nil {
			return err
		}
	}
	c.g.nullable = c.g.findNullable()
	return nil
}

// define adds the alternatives of a name.
func (c *compiler) define(name string, e expr) error {
	alts, ok := e.(alternatives)
	if !ok {
		alts = alternatives{e}
	}
	for _, alt := range alts {
		body, err := c.body(alt)
		if err != nil {
			return err
		}
		c.add(name, body)
	}
	if c.symbols > maxSymbols {
		return fmt.Errorf("%w: the grammar has more than %d symbols", ErrTooLarge, maxSymbols)
	}
	return nil
}

func (c *compiler) add(name string, body []symbol) {
	c.symbols += 1 + len(body)
	c.g.byName[name] = append(c.g.byName[name], len(c.g.rules))
	c.g.rules = append(c.g.rules, rule{name, body})
}

// named makes a rule for an expression.
func (c *compiler) named(e expr) (symbol, error) {
	c.fresh++
	name := fmt.Sprintf("(%d)", c.fresh)
	return symbol{rule: name}, c.define(name, e)
}

// body converts an expression to a sequence of symbols.
func (c *compiler) body(e expr) ([]symbol, error) {
	if c.symbols > maxSymbols {
		return nil, fmt.Errorf("%w: the grammar has more than %d symbols", ErrTooLarge, maxSymbols)
	}
	switch e := e.(type) {
	case sequence:
		var out []symbol
		for _, part := range e {
			body, err := c.body(part)
			if err != nil {
				return nil, err
			}
			out = append(out, body...)
		}
		return out, nil
	case alternatives:
		if len(e) == 1 {
			return c.body(e[0])
		}
		s, err := c.named(e)
		return []symbol{s}, err
	case repeated:
		return c.repeated(e)
	case reference:
		if !isTerminal(e.name) {
			if _, known := c.rules[e.name]; !known {
				return nil, wrong(e.line, "no rule named %s", e.name)
			}
			return []symbol{{rule: e.name}}, nil
		}
		re, _, err := c.regexp(e, nil)
		if err != nil {
			return nil, err
		}
		return c.symbol(re, e.name, e.line)
	case literal:
		if e.regexp == "" { // the empty string
			return nil, nil
		}
		return c.symbol(e.regexp, e.shown, e.line)
	default:
		return nil, nil
	}
}

func (c *compiler) symbol(re, shown string, line int) ([]symbol, error) {
	t, err := c.terminal(re, shown, line)
	return []symbol{{terminal: t}}, err
}

// repeated writes repetitions as left-recursive rules, which cost the least.
func (c *compiler) repeated(e repeated) ([]symbol, error) {
	one, err := c.named(e.of)
	if err != nil {
		return nil, err
	}
	out := slices.Repeat([]symbol{one}, e.min)
	c.symbols += e.min
	c.fresh++
	name := fmt.Sprintf("(%d)", c.fresh)
	switch {
	case e.max < 0:
		c.add(name, nil)
		c.add(name, []symbol{{rule: name}, one})
		return append(out, symbol{rule: name}), nil
	case e.max > e.min:
		c.add(name, nil)
		c.add(name, []symbol{one})
		c.symbols += e.max - e.min
		if c.symbols > maxSymbols {
			return nil, fmt.Errorf("%w: the grammar has more than %d symbols", ErrTooLarge, maxSymbols)
		}
		return append(out, slices.Repeat([]symbol{{rule: name}}, e.max-e.min)...), nil
	default:
		return out, nil
	}
}

// terminal compiles an expression once.
func (c *compiler) terminal(re, shown string, line int) (int, error) {
	if t, known := c.places[re]; known {
		return t, nil
	}
	parsed, err := syntax.Parse(re, syntax.Perl)
	if err != nil {
		return 0, wrong(line, "%s: %v", shown, err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, wrong(line, "%s: %v", shown, err)
	}
	ends, _ := prefixes(prog, "", 0, maxSteps)
	c.places[re] = len(c.g.terminals)
	c.g.terminals = append(c.g.terminals, terminal{shown, prog, len(ends) > 0})
	return c.places[re], nil
}

// regexp converts an expression of terminals to one regular expression. inside are the
// enclosing terminals, which must not refer to themselves.
func (c *compiler) regexp(e expr, inside []string) (re, shown string, err error) {
	many := func(list []expr, between string) (string, string, error) {
		parts := make([]string, len(list))
		for i, sub := range list {
			if parts[i], shown, err = c.regexp(sub, inside); err != nil {
				return "", "", err
			}
		}
		joined := "(?:" + strings.Join(parts, between) + ")"
		if len(joined) > MaxGrammarBytes {
			return "", "", fmt.Errorf("%w: a terminal has more than %d bytes", ErrTooLarge, MaxGrammarBytes)
		}
		return joined, shown, nil
	}
	switch e := e.(type) {
	case sequence:
		return many(e, "")
	case alternatives:
		return many(e, "|")
	case repeated:
		if re, shown, err = c.regexp(e.of, inside); err != nil {
			return "", "", err
		}
		most := ""
		if e.max >= 0 {
			most = strconv.Itoa(e.max)
		}
		return fmt.Sprintf("(?:%s){%d,%s}", re, e.min, most), shown, nil
	case reference:
		def, known := c.terminals[e.name]
		switch {
		case !isTerminal(e.name):
			return "", "", wrong(e.line, "a terminal cannot contain the rule %s", e.name)
		case !known:
			return "", "", wrong(e.line, "no terminal named %s; known terminals are %s", e.name, strings.Join(slices.Sorted(maps.Keys(c.terminals)), ", "))
		case slices.Contains(inside, e.name):
			return "", "", wrong(e.line, "the terminal %s contains itself", e.name)
		}
		re, _, err = c.regexp(def, append(slices.Clone(inside), e.name))
		return re, e.name, err
	case literal:
		return "(?:" + e.regexp + ")", e.shown, nil
	default:
		return "", "", nil
	}
}

// findNullable returns the rules that can match the empty text.
func (g *Grammar) findNullable() map[string]bool {
	out := map[string]bool{}
	consumes := func(s symbol) bool {
		if s.rule == "" {
			return !g.terminals[s.terminal].empty
		}
		return !out[s.rule]
	}
	for changed := true; changed; {
		changed = false
		for _, r := range g.rules {
			if !out[r.name] && !slices.ContainsFunc(r.body, consumes) {
				out[r.name], changed = true, true
			}
		}
	}
	return out
}
