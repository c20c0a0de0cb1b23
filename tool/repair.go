package tool

import (
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// repairJSON repairs arguments that are almost JSON, and lists its changes. It repairs only
// what has a single reading. It never closes a string or a bracket: the end was cut off, and
// its content is unknown.
func repairJSON(text string) (repaired string, steps []string, ok bool) {
	r := repairer{in: strings.TrimSpace(strings.TrimPrefix(text, "\uFEFF"))}
	if r.in != text {
		r.addStep("white space or a byte order mark removed")
	}
	r.unfence()
	if !r.scan() || len(r.steps) == 0 {
		return text, nil, false
	}
	repaired = r.out.String()
	if dragoman.CheckArguments(repaired) != nil {
		return text, nil, false
	}
	return repaired, r.steps, true
}

type repairer struct {
	in    string
	out   strings.Builder
	steps []string
	seen  map[string]bool
}

func (r *repairer) addStep(what string) {
	if !r.seen[what] {
		if r.seen == nil {
			r.seen = map[string]bool{}
		}
		r.seen[what] = true
		r.steps = append(r.steps, what)
	}
}

// unfence removes a Markdown fence around the whole text.
func (r *repairer) unfence() {
	inner, ok := strings.CutPrefix(r.in, "```")
	if !ok {
		return
	}
	inner, ok = strings.CutSuffix(inner, "```")
	line, body, many := strings.Cut(inner, "\n")
	if ok && many && !strings.ContainsAny(line, "{}\"") {
		r.in = strings.TrimSpace(body)
		r.addStep("Markdown fence removed")
	}
}

// scan copies the text with repairs. It reports whether every string ended.
func (r *repairer) scan() bool {
	for i := 0; i < len(r.in); {
		switch c := r.in[i]; {
		case c == '"':
			n, ok := r.text(r.in[i:])
			if !ok {
				return false
			}
			i += n
		case c == ',':
			rest := strings.TrimLeft(r.in[i+1:], " \t\r\n")
			if rest != "" && (rest[0] == '}' || rest[0] == ']') {
				r.addStep("trailing comma removed")
			} else {
				r.out.WriteByte(c)
			}
			i++
		case isWordByte(c):
			n := 1
			for i+n < len(r.in) && isWordByte(r.in[i+n]) {
				n++
			}
			r.word(r.in[i : i+n])
			i += n
		default:
			r.out.WriteByte(c)
			i++
		}
	}
	return true
}

// word copies a word; Python words with one meaning become JSON.
func (r *repairer) word(w string) {
	switch w {
	case "True", "False":
		r.addStep("True and False written as true and false")
		w = strings.ToLower(w)
	case "None":
		r.addStep("None written as null")
		w = "null"
	}
	r.out.WriteString(w)
}

// text copies a string and returns its length; ok is false if it does not end.
func (r *repairer) text(s string) (n int, ok bool) {
	r.out.WriteByte('"')
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			r.out.WriteByte(c)
			return i + 1, true
		case c == '\\' && i+1 < len(s) && s[i+1] == '\'':
			r.addStep(`\' written as '`)
			r.out.WriteByte('\'')
			i++
		case c == '\\' && i+1 < len(s):
			r.out.WriteString(s[i : i+2])
			i++
		case c == '\n':
			r.addStep("line breaks in a string escaped")
			r.out.WriteString(`\n`)
		case c == '\t':
			r.addStep("tabs in a string escaped")
			r.out.WriteString(`\t`)
		case c < 0x20:
			r.addStep("control characters in a string escaped")
			fmt.Fprintf(&r.out, `\u%04x`, c)
		default:
			r.out.WriteByte(c)
		}
	}
	return len(s), false
}
