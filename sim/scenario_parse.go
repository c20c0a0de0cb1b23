package sim

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// SyntaxError reports an error in a script.
type SyntaxError struct {
	// Name is the name of the script, Line the number of the line, from 1.
	Name   string
	Line   int
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.Reason) }

//go:embed demo.scenario
var demo string

// ParseScenario parses a script in the format that the package comment describes. name is the
// name of the script in errors. The returned error joins a [*SyntaxError] for each wrong
// line.
func ParseScenario(name, script string) (*Scenario, error) {
	p := scriptParser{name: name, lines: strings.Split(strings.ReplaceAll(script, "\r\n", "\n"), "\n")}
	for p.at < len(p.lines) {
		p.at++
		p.line(strings.TrimSpace(p.lines[p.at-1]))
	}
	p.flush()
	if len(p.turns) == 0 && len(p.errs) == 0 {
		p.at = 1
		p.wrong("the script has no turn")
	}
	for i := range p.turns {
		p.checkTurn(i)
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return &Scenario{name: name, turns: p.turns}, nil
}

// scriptParser parses a script line by line.
type scriptParser struct {
	name  string
	lines []string
	at    int // number of lines read
	turns []turn
	begun []int // the first line of each turn
	last  string
	errs  []error
	// grown holds the lines of the current text; flush joins them into it.
	grown []string
	into  *string
}

func (p *scriptParser) wrong(format string, args ...any) {
	p.errs = append(p.errs, &SyntaxError{p.name, p.at, fmt.Sprintf(format, args...)})
}

// checkTurn checks that a turn has content.
func (p *scriptParser) checkTurn(i int) {
	if t := &p.turns[i]; len(t.parts) == 0 && t.err == nil && t.stop == "" {
		p.at = p.begun[i]
		p.wrong("the turn has no content: add a line with say, call or error")
	}
}

// verbs lists the words that a line may begin with.
var verbs = []string{"turn", "match", "think", "say", "refuse", "call", "stop", "usage", "pace", "error"}

func (p *scriptParser) line(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	before := p.last
	switch {
	case line == "" || strings.HasPrefix(line, "#"):
		return
	case verb == "turn":
		p.turns, p.begun = append(p.turns, turn{title: rest}), append(p.begun, p.at)
		p.last = verb
		return
	case !slices.Contains(verbs, verb):
		p.wrong("unknown word %q at the start of a line: known words are %s", verb, strings.Join(verbs, ", "))
		return
	case len(p.turns) == 0:
		p.wrong("%s is not allowed before the first turn", verb)
		return
	}
	p.last = verb
	t := &p.turns[len(p.turns)-1]
	if t.err != nil {
		p.wrong("nothing can follow the error that ends a turn")
		return
	}
	switch verb {
	case "match":
		p.match(t, rest)
	case "say", "think", "refuse":
		p.addText(t, verb, p.text(rest), before == verb)
	case "call":
		p.call(t, rest)
	case "stop":
		p.stop(t, rest)
	case "usage":
		p.usage(t, rest)
	case "pace":
		p.pace(t, rest)
	case "error":
		p.failure(t, rest)
	}
}

// text returns the rest of a line, or the lines up to the marker that it names: <<END.
func (p *scriptParser) text(rest string) string {
	mark, ok := strings.CutPrefix(rest, "<<")
	if !ok || mark == "" || strings.ContainsAny(mark, " \t") {
		return rest
	}
	begun := p.at
	var lines []string
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		p.at++
		if strings.TrimSpace(line) == mark {
			return strings.Join(lines, "\n")
		}
		lines = append(lines, line)
	}
	p.at = begun
	p.wrong("the text has no end: missing a line with %s", mark)
	p.at = len(p.lines)
	return ""
}

func (p *scriptParser) match(t *turn, rest string) {
	what, pattern, _ := strings.Cut(rest, " ")
	pattern = strings.TrimSpace(pattern)
	m := matcher{what: matchKind(what), text: pattern}
	kinds := []matchKind{matchAny, matchUser, matchSystem, matchResult, matchTool, matchModel, matchTurn}
	switch {
	case !slices.Contains(kinds, m.what):
		p.wrong("unknown match %q: known are any, user, system, result, tool, model, turn", what)
	case m.what == matchAny && pattern != "":
		p.wrong("match any takes no pattern")
	case m.what == matchTurn:
		n, err := strconv.Atoi(pattern)
		if err != nil || n < 1 {
			p.wrong("match turn needs a number of at least 1, not %q", pattern)
		}
		m.number = n
	case len(pattern) >= 2 && pattern[0] == '/' && strings.HasSuffix(pattern, "/"):
		re, err := regexp.Compile(pattern[1 : len(pattern)-1])
		if err != nil {
			p.wrong("%v", err)
		}
		m.pattern = re
	}
	t.matches = append(t.matches, m)
}

// addText adds a text. Consecutive lines belong to one text.
func (p *scriptParser) addText(t *turn, verb, text string, goesOn bool) {
	if goesOn {
		p.grown = append(p.grown, text)
		return
	}
	p.flush()
	p.grown = append(p.grown, text)
	switch verb {
	case "say":
		part := &dragoman.Text{}
		t.parts, p.into = append(t.parts, part), &part.Text
	case "think":
		part := &dragoman.Reasoning{}
		t.parts, p.into = append(t.parts, part), &part.Text
	default:
		part := &dragoman.Refusal{}
		t.parts, p.into = append(t.parts, part), &part.Text
	}
}

// flush writes the collected text into its part.
func (p *scriptParser) flush() {
	if p.into != nil {
		*p.into = strings.Join(p.grown, "\n")
	}
	p.grown, p.into = nil, nil
}

func (p *scriptParser) call(t *turn, rest string) {
	name, input, _ := strings.Cut(rest, " ")
	if name == "" {
		p.wrong("call needs the name of a tool")
		return
	}
	at := p.at
	c := &dragoman.ToolCall{Name: name, Arguments: p.text(strings.TrimSpace(input))}
	switch {
	case c.Arguments == "":
		c.Arguments = "{}"
	case strings.HasPrefix(strings.TrimSpace(c.Arguments), "{"):
		if problem := dragoman.CheckArguments(c.Arguments); problem != nil {
			p.at, at = at, p.at
			p.wrong("%s", problem.Message)
			p.at = at
		}
	default:
		c.Payload = codes.PayloadText
	}
	t.parts = append(t.parts, c)
}

func (p *scriptParser) stop(t *turn, rest string) {
	known := []dragoman.StopReason{
		dragoman.StopEnd, dragoman.StopToolCalls, dragoman.StopLength, dragoman.StopSequence, dragoman.StopContentFilter,
		dragoman.StopRefusal, dragoman.StopPause, dragoman.StopMalformedCall,
	}
	t.stop = dragoman.StopReason(rest)
	if !slices.Contains(known, t.stop) {
		p.wrong("unknown stop reason %q: known reasons are %s", rest, listed(known))
	}
}

// settings splits leading name=value words off a text.
func settings(rest string) (pairs [][2]string, text string) {
	for rest != "" {
		word, more, _ := strings.Cut(rest, " ")
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return pairs, rest
		}
		pairs = append(pairs, [2]string{name, value})
		rest = strings.TrimSpace(more)
	}
	return pairs, ""
}

func (p *scriptParser) usage(t *turn, rest string) {
	pairs, left := settings(rest)
	if left != "" || len(pairs) == 0 {
		p.wrong("usage needs counts, such as input=12 output=3")
	}
	for _, pair := range pairs {
		n, err := strconv.ParseInt(pair[1], 10, 64)
		if err != nil || n < 0 {
			p.wrong("usage %s needs a number, not %q", pair[0], pair[1])
		}
		switch count := dragoman.Counted(n); pair[0] {
		case "input":
			t.usage.Input = count
		case "output":
			t.usage.Output = count
		case "reasoning":
			t.usage.Reasoning = count
		case "cache_read":
			t.usage.CacheRead = count
		case "cache_write":
			t.usage.CacheWrite = count
		default:
			p.wrong("unknown usage count %s: known counts are input, output, reasoning, cache_read, cache_write", pair[0])
		}
	}
}

func (p *scriptParser) pace(t *turn, rest string) {
	pairs, left := settings(rest)
	if left != "" || len(pairs) == 0 {
		p.wrong("pace needs first=200ms, rate=50 (tokens per second), or both")
	}
	for _, pair := range pairs {
		var err error
		switch pair[0] {
		case "first":
			t.pace.FirstToken, err = time.ParseDuration(pair[1])
		case "rate":
			t.pace.TokensPerSecond, err = strconv.ParseFloat(pair[1], 64)
		default:
			p.wrong("unknown pace setting %s: known settings are first, rate", pair[0])
		}
		if err != nil || !t.pace.isValid() {
			p.wrong("invalid pace %s=%s", pair[0], pair[1])
		}
	}
}

// errorClasses lists the error classes that a script can use.
var errorClasses = []dragoman.ErrorClass{
	dragoman.ErrorBadRequest, dragoman.ErrorAuth, dragoman.ErrorPermission, dragoman.ErrorNotFound, dragoman.ErrorTooLarge,
	dragoman.ErrorContextLength, dragoman.ErrorRateLimit, dragoman.ErrorQuota, dragoman.ErrorOverloaded, dragoman.ErrorTimeout,
	dragoman.ErrorConflict, dragoman.ErrorServer, dragoman.ErrorPolicy,
}

func (p *scriptParser) failure(t *turn, rest string) {
	class, rest, _ := strings.Cut(rest, " ")
	if !slices.Contains(errorClasses, dragoman.ErrorClass(class)) {
		p.wrong("unknown error class %q: known classes are %s", class, listed(errorClasses))
	}
	pairs, message := settings(strings.TrimSpace(rest))
	t.err = &dragoman.APIError{Class: dragoman.ErrorClass(class), Message: p.text(message)}
	for _, pair := range pairs {
		var err error
		switch pair[0] {
		case "status":
			t.err.Status, err = strconv.Atoi(pair[1])
			if t.err.Status < 400 || t.err.Status > 599 {
				p.wrong("status %s is not an error status", pair[1])
			}
		case "retry":
			t.err.RetryAfter, err = time.ParseDuration(pair[1])
		default:
			p.wrong("unknown error setting %s=: known settings are status=, retry=", pair[0])
		}
		if err != nil {
			p.wrong("invalid value %s=%s", pair[0], pair[1])
		}
	}
}
