package recall

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

// answer is the stored form of an answer: its messages without what the client sees and sends
// back anyway. Texts, arguments and media are filled in again from there.
type answer struct {
	Messages []dragoman.Message `json:"messages"`
	// Texts are the texts of the messages, in order.
	Texts []piece `json:"texts,omitempty"`
	// Plain means that the answer has no state to restore. It is stored only together with
	// answers that have state, so that it is not mistaken for one of them.
	Plain bool `json:"plain,omitempty"`
}

// piece is one text of an answer: the number of characters that are not white space, and the
// white space around them, which is lost when dialects join texts.
type piece struct {
	Length int    `json:"n"`
	Lead   string `json:"lead,omitempty"`
	Trail  string `json:"trail,omitempty"`
}

// answers are answers that a client cannot distinguish: the same text and calls, except for
// ids. The newest is first.
type answers struct {
	V int `json:"v"`
	// Until is when they expire, unless they are used.
	Until time.Time `json:"until"`
	List  []answer  `json:"answers"`
}

const (
	version = 1
	// mostAlike is the maximum number of indistinguishable answers to store.
	mostAlike = 4
)

// readAnswers decodes stored answers. It returns none if they are not readable, such as those
// of a newer version.
func readAnswers(raw []byte) answers {
	var a answers
	if raw == nil || json.Unmarshal(raw, &a) != nil || a.V != version {
		return answers{}
	}
	return a
}

// strip returns the stored form of a response's output.
func strip(output []dragoman.Message, origin *dragoman.Origin) answer {
	var a answer
	for i := range output {
		m := output[i]
		m.Native, m.Cache = nil, nil
		if m.Origin == nil {
			m.Origin = origin
		}
		m.Parts = make([]dragoman.Part, len(output[i].Parts))
		for j, p := range output[i].Parts {
			m.Parts[j] = a.part(p)
		}
		a.Messages = append(a.Messages, m)
	}
	return a
}

// part returns the stored form of a part.
func (a *answer) part(p dragoman.Part) dragoman.Part {
	if text, ok := words(p); ok {
		a.Texts = append(a.Texts, measure(text))
	}
	switch p := p.(type) {
	case *dragoman.Text:
		return &dragoman.Text{Signature: p.Signature, Extra: p.Extra}
	case *dragoman.Refusal:
		return &dragoman.Refusal{Extra: p.Extra}
	case *dragoman.Data:
		return &dragoman.Text{}
	case *dragoman.Media:
		return &dragoman.Media{Media: p.Media, Extra: p.Extra}
	case *dragoman.ToolCall:
		if p.Hosted {
			return p
		}
		c := *p
		c.Arguments, c.Problem, c.Cache = "", nil, nil
		return &c
	default:
		return p
	}
}

func measure(text string) piece {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return piece{Lead: text}
	}
	start := strings.Index(text, trimmed)
	n := 0
	for _, r := range trimmed {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return piece{Length: n, Lead: text[:start], Trail: text[start+len(trimmed):]}
}

// state returns the opaque values of a turn, however they are spelled: true for values of its
// reasoning, false for unknown blocks. thinks reports whether there is any thinking.
func state(turn []dragoman.Message) (values map[sum]bool, thinks bool) {
	values = map[sum]bool{}
	note := func(s string) {
		if s != "" {
			values[texts(s)] = true
		}
	}
	for i := range turn {
		records := wirekit.RecordsOf(turn[i].Parts)
		for _, p := range turn[i].Parts {
			switch p := p.(type) {
			case *dragoman.Reasoning:
				thinks = true
				note(p.Signature)
				note(p.Encrypted)
				for _, d := range p.Details {
					values[sameJSON(d)] = true
				}
			case *dragoman.Text:
				note(p.Signature)
			case *dragoman.Media:
				note(signed(p))
			case *dragoman.Opaque:
				values[sameBlock(p.JSON)] = false
			case *dragoman.ToolCall:
				if p.Hosted {
					values[texts("hosted", p.ID)] = false
					continue
				}
				note(p.Signature)
				through, _ := wirekit.ThroughChat(p, records)
				note(through)
			}
		}
	}
	return values, thinks
}

// signed returns the signature of media, which some servers sign.
func signed(m *dragoman.Media) string {
	if m.Extra == nil {
		return ""
	}
	for _, f := range m.Extra.Fields {
		if f.Path == "/thoughtSignature" {
			return string(f.Value)
		}
	}
	return ""
}

// sameIDs reports whether two answers have the same calls by id.
func sameIDs(a, b *answer) bool {
	return slices.EqualFunc(a.calls(), b.calls(), func(c, d *dragoman.ToolCall) bool { return c.ID == d.ID })
}

// calls returns the calls that a client runs.
func (a *answer) calls() (calls []*dragoman.ToolCall) {
	for i := range a.Messages {
		for _, c := range a.Messages[i].ToolCalls() {
			if !c.Hosted {
				calls = append(calls, c)
			}
		}
	}
	return calls
}

// encode encodes answers, of which the first is new. If they are too large, the old ones are
// dropped, and then the new one.
func encode(list []answer, until time.Time, most int) ([]byte, error) {
	for len(list) > 0 {
		raw, err := json.Marshal(answers{V: version, Until: until, List: list})
		if err != nil {
			return nil, fmt.Errorf("recall: storing a response: %w", err)
		}
		if len(raw) <= most {
			return raw, nil
		}
		if len(list) == 1 {
			return nil, &TooLargeError{What: "the reasoning state of a response", Size: len(raw), Max: most, Advice: "the client must return the reasoning itself"}
		}
		list = list[:len(list)-1]
	}
	return nil, nil
}
