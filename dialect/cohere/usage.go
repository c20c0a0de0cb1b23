package cohere

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// readUsage reads a usage object. tokens counts everything that the model read
// and wrote. billed_units counts what is charged; it is stored as an extra
// field.
func readUsage(r *jsonwire.Reader, rep *dragoman.Report) (u dragoman.Usage) {
	if !wirekit.HasCounts(r, []byte("usage"), rep) {
		return u
	}
	var billed dragoman.Usage
	for key := range r.Object() {
		switch string(key) {
		case "tokens":
			if wirekit.HasCounts(r, key, rep) {
				readTokens(r, &u, rep, func(key, raw []byte) { extra.Add(&u.Extra, name, "/tokens", key, bytes.Clone(raw)) })
			}
		case "billed_units":
			raw := bytes.Clone(r.Raw())
			extra.Add(&u.Extra, name, "", []byte("billed_units"), raw)
			if in := jsonwire.NewReader(raw); in.Kind() == '{' {
				readTokens(in, &billed, new(dragoman.Report), func(_, _ []byte) {})
			}
		case "cached_tokens":
			u.CacheRead = wirekit.Count(r, key, rep)
		default:
			extra.Add(&u.Extra, name, "", key, bytes.Clone(r.Raw()))
		}
	}
	if !u.Input.Known && !u.Output.Known { // older servers send only billed_units
		u.Input, u.Output = billed.Input, billed.Output
	}
	return u
}

func readTokens(r *jsonwire.Reader, u *dragoman.Usage, rep *dragoman.Report, other func(key, raw []byte)) {
	for key := range r.Object() {
		switch string(key) {
		case "input_tokens":
			u.Input = wirekit.Count(r, key, rep)
		case "output_tokens":
			u.Output = wirekit.Count(r, key, rep)
		default:
			name := bytes.Clone(key)
			other(name, r.Raw())
		}
	}
}

func hasUsage(u dragoman.Usage) bool {
	return u.Input.Known || u.Output.Known || u.CacheRead.Known || u.CacheWrite.Known || u.Reasoning.Known || u.Extra != nil
}

func writeUsage(w *jsonwire.Writer, u dragoman.Usage, rep *dragoman.Report) {
	u = wirekit.ClampUsage(u, rep)
	w.BeginObject()
	extra.WriteBut(w, u.Extra, name, "", func(f dragoman.Field) bool { return f.Path != "/billed_units" })
	if u.Input.Known || u.Output.Known || extra.Has(u.Extra, name, "/tokens") {
		w.Key("tokens")
		w.BeginObject()
		if u.Input.Known {
			w.IntField("input_tokens", u.Input.N)
		}
		if u.Output.Known {
			w.IntField("output_tokens", u.Output.N)
		}
		extra.Write(w, u.Extra, name, "/tokens")
		w.EndObject()
	}
	if u.CacheRead.Known {
		w.IntField("cached_tokens", u.CacheRead.N)
	}
	extra.WriteBut(w, u.Extra, name, "", func(f dragoman.Field) bool { return f.Path == "/billed_units" })
	w.EndObject()
	if u.CacheWrite.Known {
		rep.Add(dragoman.Dropped, dragoman.Info, "/usage/cache_write", "Cohere does not count cache writes")
	}
	if u.Reasoning.Known {
		rep.Add(dragoman.Dropped, dragoman.Info, "/usage/reasoning", "Cohere does not count reasoning tokens separately")
	}
	extra.ReportEcho(rep, u.Extra, name, extra.At("/usage"))
}
