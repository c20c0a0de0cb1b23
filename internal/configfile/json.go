package configfile

import (
	"bytes"
	"encoding/json"
)

// JSON writes a value as JSON. It refuses a mapping with a duplicate field.
func (r *Reader) JSON(n *Node, what string) json.RawMessage {
	var b bytes.Buffer
	r.appendJSON(&b, n, what)
	return b.Bytes()
}

func (r *Reader) appendJSON(b *bytes.Buffer, n *Node, what string) {
	switch n.Kind {
	case Null, Wrong:
		b.WriteString("null")
	case Bool, Number:
		b.WriteString(n.Text)
	case String:
		b.Write(Quote(n.Text))
	case List:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			r.appendJSON(b, item, what)
		}
		b.WriteByte(']')
	case Map:
		b.WriteByte('{')
		first := true
		r.Each(n, what, func(key, value *Node) {
			if !first {
				b.WriteByte(',')
			}
			first = false
			b.Write(Quote(key.Text))
			b.WriteByte(':')
			r.appendJSON(b, value, what)
		})
		b.WriteByte('}')
	}
}

// Quote writes a text as JSON. It never fails.
func Quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`)
	}
	return b
}
