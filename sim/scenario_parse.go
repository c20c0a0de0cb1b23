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

// SyntaxError says where a script is wrong.
type SyntaxError struct {
	// Name is that of the script, Line the number of the line, from 1.
	Name   string
	Line   int
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.Reason) }

//go:embed demo.scenario
var demo string

// ParseScenario reads a script, in the language that the package comment
// describes. name is what errors call it. An error joins a [*SyntaxError] for
// each line that is wrong.
func ParseScenario(name, script string) (*Scenario, error) {
	p := scriptParser{name: name, lines: strings.Split(strings.ReplaceAll(script, "\r\n", "\n"), "\n")}
	for p.at < len(p.lines) {
		p.at++
		p.line(strings.TrimSpace(p.lines[p.at-1]))
	}
	p.settle()
	if len(p.turns) == 0 && len(p.errs) == 0 {
		p.at = 1
		p.wrong("there is no turn in it")
	}
	for i := range p.turns {
		p.whole(i)
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return &Scenario{name: name, turns: p.turns}, nil
}

// scriptParser reads a script line by line.
type scriptParser struct {
	name  string
	lines []string
	at    int // lines read
	turns []turn
	begun []int // the line on which each turn begins
	last  string
	errs  []error
	// grown are the lines of the text that is being read, which into will be.
	grown []string
	into  *string
}

func (p *scriptParser) wrong(format string, args ...any) {
	p.errs = append(p.errs, &SyntaxError{p.name, p.at, fmt.Sprintf(format, args...)})
}

// whole checks that a turn says something.
func (p *scriptParser) whole(i int) {
	if t := &p.turns[i]; len(t.parts) == 0 && t.err == nil && t.stop == "" {
		p.at = p.begun[i]
		p.wrong("the turn says nothing: give it a line of say, call or error")
	}
}

// verbs are the words that a line may begin with.
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
		p.wrong("%q is none of the words that a line begins with: %s", verb, strings.Join(verbs, ", "))
		return
	case len(p.turns) == 0:
		p.wrong("%s stands before the first turn", verb)
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
		p.speak(t, verb, p.text(rest), before == verb)
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

// text is the rest of a line, or the lines up to the mark that it names: <<END.
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
	p.wrong("the text has no end: no line says %s", mark)
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
		p.wrong("match %q is none of any, user, system, result, tool, model, turn", what)
	case m.what == matchAny && pattern != "":
		p.wrong("match any takes no pattern")
	case m.what == matchTurn:
		n, err := strconv.Atoi(pattern)
		if err != nil || n < 1 {
			p.wrong("match turn wants a number from 1 on, not %q", pattern)
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

// speak adds a text; lines that follow each other are lines of one.
func (p *scriptParser) speak(t *turn, verb, text string, goesOn bool) {
	if goesOn {
		p.grown = append(p.grown, text)
		return
	}
	p.settle()
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

// settle writes the text that was read into its part.
func (p *scriptParser) settle() {
	if p.into != nil {
		*p.into = strings.Join(p.grown, "\n")
	}
	p.grown, p.into = nil, nil
}

func (p *scriptParser) call(t *turn, rest string) {
	name, input, _ := strings.Cut(rest, " ")
	if name == "" {
		p.wrong("call wants the name of a tool")
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
		p.wrong("stop %q is none of %s", rest, listed(known))
	}
}

// settings splits name=value words off the front of a text.
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
		p.wrong("usage wants counts like input=12 output=3")
	}
	for _, pair := range pairs {
		n, err := strconv.ParseInt(pair[1], 10, 64)
		if err != nil || n < 0 {
			p.wrong("usage %s wants a number, not %q", pair[0], pair[1])
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
			p.wrong("usage %s is none of input, output, reasoning, cache_read, cache_write", pair[0])
		}
	}
}

func (p *scriptParser) pace(t *turn, rest string) {
	pairs, left := settings(rest)
	if left != "" || len(pairs) == 0 {
		p.wrong("pace wants first=200ms, rate=50 (tokens in a second), or both")
	}
	for _, pair := range pairs {
		var err error
		switch pair[0] {
		case "first":
			t.pace.First, err = time.ParseDuration(pair[1])
		case "rate":
			t.pace.TokensPerSecond, err = strconv.ParseFloat(pair[1], 64)
		default:
			p.wrong("pace %s is none of first, rate", pair[0])
		}
		if err != nil || !t.pace.sensible() {
			p.wrong("pace %s=%s makes no sense", pair[0], pair[1])
		}
	}
}

// errorClasses are those that a script can name.
var errorClasses = []dragoman.ErrorClass{
	dragoman.ErrorBadRequest, dragoman.ErrorAuth, dragoman.ErrorPermission, dragoman.ErrorNotFound, dragoman.ErrorTooLarge,
	dragoman.ErrorContextLength, dragoman.ErrorRateLimit, dragoman.ErrorQuota, dragoman.ErrorOverloaded, dragoman.ErrorTimeout,
	dragoman.ErrorConflict, dragoman.ErrorServer, dragoman.ErrorPolicy,
}

func (p *scriptParser) failure(t *turn, rest string) {
	class, rest, _ := strings.Cut(rest, " ")
	if !slices.Contains(errorClasses, dragoman.ErrorClass(class)) {
		p.wrong("error %q is none of %s", class, listed(errorClasses))
	}
	pairs, message := settings(strings.TrimSpace(rest))
	t.err = &dragoman.APIError{Class: dragoman.ErrorClass(class), Message: p.text(message)}
	for _, pair := range pairs {
		var err error
		switch pair[0] {
		case "status":
			t.err.Status, err = strconv.Atoi(pair[1])
			if t.err.Status < 400 || t.err.Status > 599 {
				p.wrong("status %s is none of an error", pair[1])
			}
		case "retry":
			t.err.RetryAfter, err = time.ParseDuration(pair[1])
		default:
			p.wrong("error %s= is none of status=, retry=", pair[0])
		}
		if err != nil {
			p.wrong("%s=%s makes no sense", pair[0], pair[1])
		}
	}
}
