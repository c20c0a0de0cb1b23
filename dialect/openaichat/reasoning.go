package openaichat

import (
	"encoding/json"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// reasoningFields collects the reasoning of one message from the fields that servers use for it.
// Two fields with text duplicate each other: the first non-empty one counts (quirk G1).
type reasoningFields struct {
	text    string
	field   string
	details []json.RawMessage
}

// readField reads one of the fields with reasoning.
func (f *reasoningFields) readField(r *jsonwire.Reader, key string, e **dragoman.Extra) {
	if key == "reasoning_details" && r.Kind() == '[' {
		n := 0
		for range r.Array() {
			f.details = append(f.details, clone(r.Raw()))
			n++
		}
		if n == 0 {
			extra.Add(e, name, "", []byte(key), []byte("[]"))
		}
		return
	}
	raw := r.Raw()
	text, plain := looseText(raw)
	if !plain || f.field != "" || text == "" {
		// Null, empty, a duplicate, or not a string: kept to be sent back unchanged.
		extra.Add(e, name, "", []byte(key), clone(raw))
	}
	if f.field == "" && text != "" {
		f.text, f.field = text, key
	}
}

// looseText reads reasoning that may be a string, an object with text or content, or a list of
// those (quirk G6). plain reports whether it was a string.
func looseText(raw []byte) (text string, plain bool) {
	r := jsonwire.NewReader(raw)
	text = looseTextFrom(r)
	return text, len(raw) > 0 && raw[0] == '"'
}

func looseTextFrom(r *jsonwire.Reader) string {
	if r.Kind() == '"' {
		return r.String()
	}
	var b strings.Builder
	addLooseText(r, &b)
	return b.String()
}

func addLooseText(r *jsonwire.Reader, b *strings.Builder) {
	switch r.Kind() {
	case '"':
		b.WriteString(r.String())
	case '{':
		for key := range r.Object() {
			switch string(key) {
			case "text", "content", "thinking", "summary":
				addLooseText(r, b)
			default:
				r.Skip()
			}
		}
	case '[':
		for range r.Array() {
			addLooseText(r, b)
		}
	default:
		r.Skip()
	}
}

func (f *reasoningFields) part() dragoman.Part {
	if f.field == "" && f.details == nil {
		return nil
	}
	p := &dragoman.Reasoning{Text: f.text, Field: f.field, Details: f.details}
	if p.Text == "" {
		p.Text = detailsText(f.details)
	}
	return p
}

// detailsText returns the visible text of reasoning records.
func detailsText(details []json.RawMessage) string {
	var b strings.Builder
	for _, d := range details {
		r := jsonwire.NewReader(d)
		for key := range r.Object() {
			switch string(key) {
			case "text", "summary":
				if r.Kind() == '"' {
					b.WriteString(r.String())
					continue
				}
			}
			r.Skip()
		}
	}
	return b.String()
}

// fieldThinking marks reasoning that was a content part (Mistral).
const fieldThinking = "content.thinking"

func thinkingPart(o *dragoman.Opaque) dragoman.Part {
	text := ""
	r := jsonwire.NewReader(o.JSON)
	for key := range r.Object() {
		if string(key) == "thinking" {
			text = looseTextFrom(r)
		} else {
			r.Skip()
		}
	}
	return &dragoman.Reasoning{Text: text, Field: fieldThinking, Details: []json.RawMessage{o.JSON}}
}

// detailMerger merges streamed reasoning_details. Fragments of one record share its type, and its
// id or, if one of them has none, its index: some servers give each item its own id and number
// its records from 0 again. Text, summary and data are appended; other fields are replaced; null
// never replaces a value (quirk G5).
type detailMerger struct {
	records []*detail
}

type detail struct {
	index, id, typ string
	members        []detailField
	at             map[string]int // positions of fields, set once fragments are merged
}

type detailField struct {
	key    string
	text   []byte // for fields whose fragments are appended
	raw    []byte
	append bool
}

// add adds one fragment and returns its visible text.
func (m *detailMerger) add(raw []byte) string {
	var frag detail
	var text strings.Builder
	r := jsonwire.NewReader(raw)
	for key := range r.Object() {
		k := string(key)
		switch {
		case (k == "text" || k == "summary" || k == "data") && r.Kind() == '"':
			s := r.String()
			frag.members = append(frag.members, detailField{key: k, text: []byte(s), append: true})
			if k != "data" {
				text.WriteString(s)
			}
		default:
			v := clone(r.Raw())
			switch k {
			case "index":
				frag.index = string(v)
			case "id":
				frag.id = string(v)
			case "type":
				frag.typ = string(v)
			}
			frag.members = append(frag.members, detailField{key: k, raw: v})
		}
	}
	if r.Err() != nil {
		return ""
	}
	rec := m.find(&frag)
	if rec == nil {
		if len(m.records) < maxCalls {
			m.records = append(m.records, &frag)
		}
		return text.String()
	}
	for _, f := range frag.members {
		rec.set(f)
	}
	return text.String()
}

func known(s string) bool { return s != "" && s != "null" && s != `""` }

// find returns the record of a fragment, the last one of several, or nil.
func (m *detailMerger) find(f *detail) *detail {
	for i, r := range slices.Backward(m.records) {
		if r.typ != f.typ && known(r.typ) && known(f.typ) {
			continue
		}
		switch {
		case known(f.id) && known(r.id):
			if f.id == r.id {
				return r
			}
		case known(f.index) && known(r.index):
			if f.index == r.index {
				return r
			}
		case !known(f.index) && !known(f.id) && i == len(m.records)-1:
			return r
		}
	}
	return nil
}

func (d *detail) set(f detailField) {
	if d.at == nil {
		d.at = make(map[string]int, len(d.members))
		for i := len(d.members) - 1; i >= 0; i-- { // the first of duplicates wins
			d.at[d.members[i].key] = i
		}
	}
	i, ok := d.at[f.key]
	if !ok {
		d.at[f.key] = len(d.members)
		d.members = append(d.members, f)
		return
	}
	switch have := &d.members[i]; {
	case f.append && have.append:
		have.text = append(have.text, f.text...)
	case f.append:
		*have = f
	case string(f.raw) != "null" && !have.append:
		have.raw = f.raw
	}
}

func (m *detailMerger) details() []json.RawMessage {
	var out []json.RawMessage
	for _, rec := range m.records {
		var w jsonwire.Writer
		w.BeginObject()
		for _, f := range rec.members {
			w.QuotedKey(f.key)
			if f.append {
				w.String(string(f.text))
			} else {
				w.Raw(f.raw)
			}
		}
		w.EndObject()
		out = append(out, w.Buf)
	}
	return out
}
