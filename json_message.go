package dragoman

import "github.com/dragoman-go/dragoman/internal/jsonwire"

// MarshalJSON writes the message as stored JSON, with its version.
func (m Message) MarshalJSON() ([]byte, error) {
	return storeSized("message", m.storedSize(), func(out *storer) {
		out.top()
		m.members(out)
		out.w.EndObject()
	})
}

// UnmarshalJSON reads a stored message.
func (m *Message) UnmarshalJSON(b []byte) error { return loadTop(b, "message", m, loadMessage) }

// storedSize is about what a message takes: a little more than most do.
func (m *Message) storedSize() int {
	size := 40
	for _, p := range m.Parts {
		size += storedSize(p)
	}
	if o := m.Origin; o != nil {
		size += 64 + len(o.Dialect) + len(o.Provider) + len(o.Scope) + len(o.Model)
	}
	if m.Native != nil {
		size += 128 + quotedSize(len(m.Native.Raw))
	}
	if m.Extra != nil {
		size += 48
		for _, f := range m.Extra.Fields {
			size += 24 + len(f.Path) + quotedSize(len(f.Value))
		}
	}
	return size
}

// quotedSize is about what JSON of n bytes takes as a text: its quotes are escaped.
func quotedSize(n int) int { return n + n/4 }

func (m *Message) store(out *storer) {
	out.w.BeginObject()
	m.members(out)
	out.w.EndObject()
}

func (m *Message) members(out *storer) {
	out.str("role", string(m.Role))
	out.str("name", m.Name)
	out.str("phase", m.Phase)
	out.str("status", string(m.Status))
	storeList(out, "parts", m.Parts, storePart)
	storeOpt(out, "cache", m.Cache, (*CacheHint).store)
	storeOpt(out, "origin", m.Origin, (*Origin).store)
	storeOpt(out, "native", m.Native, (*Sidecar).store)
	storeOpt(out, "extra", m.Extra, (*Extra).store)
}

func loadMessage(r *jsonwire.Reader) (m Message) {
	for key := range r.Object() {
		switch string(key) {
		case "role":
			m.Role = loadWord[Role](r)
		case "name":
			m.Name = r.String()
		case "phase":
			m.Phase = r.String()
		case "status":
			m.Status = loadWord[Status](r)
		case "parts":
			m.Parts = loadList(r, loadPart)
		case "cache":
			m.Cache = loadOpt(r, loadCacheHint)
		case "origin":
			m.Origin = loadOpt(r, loadOrigin)
		case "native":
			m.Native = loadOpt(r, loadSidecar)
		case "extra":
			m.Extra = loadOpt(r, loadExtra)
		default:
			r.Skip()
		}
	}
	return m
}
