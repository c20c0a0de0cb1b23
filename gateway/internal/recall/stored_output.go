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

// storedOutput is the stored form of the output of a response, without content that the client
// sees and sends back: texts, arguments and media are filled in from the request.
type storedOutput struct {
	Messages []dragoman.Message `json:"messages"`
	// Texts are the texts of the messages, in order.
	Texts []textShape `json:"texts,omitempty"`
	// Plain means that the output has no state to restore. It is stored only together with outputs
	// that have state, so that it is not mistaken for one of them.
	Plain bool `json:"plain,omitempty"`
}

// textShape describes one text of an output: the number of characters that are not white space,
// and the white space around them, which is lost when dialects join texts.
type textShape struct {
	Length int    `json:"n"`
	Lead   string `json:"lead,omitempty"`
	Trail  string `json:"trail,omitempty"`
}

// storedOutputs are outputs that a client cannot distinguish: the same text and calls, except for
// ids. The newest is first.
type storedOutputs struct {
	V int `json:"v"`
	// Until is when they expire, unless they are used.
	Until time.Time      `json:"until"`
	List  []storedOutput `json:"answers"`
}

const (
	version = 1
	// maxAlike is the maximum number of indistinguishable outputs to store.
	maxAlike = 4
)

// readOutputs decodes stored outputs. It returns none if they are unreadable, such as those of a
// newer version.
func readOutputs(raw []byte) storedOutputs {
	var a storedOutputs
	if raw == nil || json.Unmarshal(raw, &a) != nil || a.V != version {
		return storedOutputs{}
	}
	return a
}

// newStoredOutput returns the stored form of a response's output.
func newStoredOutput(output []dragoman.Message, origin *dragoman.Origin) storedOutput {
	var a storedOutput
	for i := range output {
		m := output[i]
		m.Native, m.Cache = nil, nil
		if m.Origin == nil {
			m.Origin = origin
		}
		m.Parts = make([]dragoman.Part, len(output[i].Parts))
		for j, p := range output[i].Parts {
			m.Parts[j] = a.stripPart(p)
		}
		a.Messages = append(a.Messages, m)
	}
	return a
}

// stripPart returns the stored form of a part.
func (a *storedOutput) stripPart(p dragoman.Part) dragoman.Part {
	if text, ok := visibleText(p); ok {
		a.Texts = append(a.Texts, measureText(text))
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

func measureText(text string) textShape {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return textShape{Lead: text}
	}
	start := strings.Index(text, trimmed)
	n := 0
	for _, r := range trimmed {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return textShape{Length: n, Lead: text[:start], Trail: text[start+len(trimmed):]}
}

// stateOf returns the hashes of the opaque values of a turn, however they are spelled: true for
// values of its reasoning, false for unknown blocks. thinks reports whether there is any thinking.
func stateOf(turn []dragoman.Message) (values map[sum]bool, thinks bool) {
	values = map[sum]bool{}
	note := func(s string) {
		if s != "" {
			values[hashTexts(s)] = true
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
					values[hashJSON(d)] = true
				}
			case *dragoman.Text:
				note(p.Signature)
			case *dragoman.Media:
				note(mediaSignature(p))
			case *dragoman.Opaque:
				values[hashBlock(p.JSON)] = false
			case *dragoman.ToolCall:
				if p.Hosted {
					values[hashTexts("hosted", p.ID)] = false
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

// mediaSignature returns the signature of media, which some servers sign.
func mediaSignature(m *dragoman.Media) string {
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

// sameIDs reports whether two outputs have the same calls by id.
func sameIDs(a, b *storedOutput) bool {
	return slices.EqualFunc(a.calls(), b.calls(), func(c, d *dragoman.ToolCall) bool { return c.ID == d.ID })
}

// calls returns the calls that a client runs.
func (a *storedOutput) calls() (calls []*dragoman.ToolCall) {
	for i := range a.Messages {
		for _, c := range a.Messages[i].ToolCalls() {
			if !c.Hosted {
				calls = append(calls, c)
			}
		}
	}
	return calls
}

// encodeOutputs encodes outputs, of which the first is new. If they are too large, it drops old
// ones, and finally fails with a [*TooLargeError].
func encodeOutputs(list []storedOutput, until time.Time, most int) ([]byte, error) {
	for len(list) > 0 {
		raw, err := json.Marshal(storedOutputs{V: version, Until: until, List: list})
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
