package dialect_test

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/internal/emitcheck"
)

// emits checks that strict clients take the answer of a cell, as a server writes it,
// which knows by what name the model was asked. What came in the same dialect is
// passed on as it is and another's to answer for.
func (m *matrixCell) emits(resp *dragoman.Response) {
	m.t.Helper()
	if m.in == m.out {
		return
	}
	enc, err := m.out.EncodeResponse(resp, dialect.EncodeOptions{Registry: m.registry(m.out), Seed: "matrix", Model: "m"})
	if err == nil {
		err = emitcheck.Whole(m.out.Dialect(), 200, nil, enc.Body)
	}
	if err != nil {
		m.t.Errorf("a strict client refuses it: %v\n%s", err, enc.Body)
	}
}

// emitsStream is emits for a stream.
func (m *matrixCell) emitsStream(src []byte) {
	m.t.Helper()
	if m.in == m.out {
		return
	}
	forms := []dialect.Codec{m.out}
	if m.out.Dialect() == dragoman.Gemini {
		forms = append(forms, gemini.Codec{Array: true})
	}
	for _, form := range forms {
		for _, usage := range []bool{false, true} {
			enc := form.NewStreamEncoder(dialect.EncodeOptions{Registry: m.registry(m.out), Seed: "matrix", Model: "m", StreamUsage: usage})
			dec := m.in.NewStreamDecoder(dialect.DecodeOptions{Registry: m.registry(m.in)})
			var body []byte
			feed := func(ev dragoman.Event) (err error) {
				body, err = enc.Encode(body, ev)
				return err
			}
			err := dec.Feed(src, feed)
			if err == nil {
				err = dec.Close(feed)
			}
			if err == nil {
				body, err = enc.Close(body)
			}
			if err == nil {
				err = emitcheck.Stream(m.out.Dialect(), nil, body)
			}
			if err != nil {
				m.t.Errorf("a strict client refuses it: %v\n%s", err, body)
			}
		}
	}
}
