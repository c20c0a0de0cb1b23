package matrix_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
)

// emits checks that strict clients accept the response of a cell as a server writes it. The server
// knows the model name of the request. A response within one dialect passes through and is not checked.
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
		m.t.Errorf("a strict client refuses the response: %v\n%s", err, enc.Body)
	}
}

// emitsStream is like emits, for a stream.
func (m *matrixCell) emitsStream(src []byte) {
	m.t.Helper()
	if m.in == m.out {
		return
	}
	forms := []dialect.Codec{m.out}
	if m.out.Dialect() == dialectname.Gemini {
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
				m.t.Errorf("a strict client refuses the stream: %v\n%s", err, body)
			}
		}
	}
}

// TestProperty_StrictClientsAcceptAnyResponse encodes random responses in every dialect, whole and
// streamed.
func TestProperty_StrictClientsAcceptAnyResponse(t *testing.T) {
	document := emitcheck.OpenResponses(t)
	for _, c := range append(slices.Clone(crosstest.Codecs), gemini.Codec{Array: true}) {
		t.Run(fmt.Sprintf("%T%+v", c, c), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				g := gen.Options{Tidy: true, Plain: true}
				resp := g.Response().Draw(rt, "response")
				resp.Origin = &dragoman.Origin{Dialect: otherDialect(c)} // in its own dialect, values are kept unchanged
				o := dialect.EncodeOptions{Seed: "s", Model: "m", StreamUsage: rapid.Bool().Draw(rt, "usage")}
				enc, err := c.EncodeResponse(resp, o)
				if err == nil {
					err = emitcheck.Whole(c.Dialect(), 200, nil, enc.Body)
				}
				if err == nil && c.Dialect() == dialectname.OpenAIResponses {
					err = document.Whole(enc.Body)
				}
				if err != nil {
					rt.Fatalf("whole: %v\n%s", err, enc.Body)
				}
				stream := c.NewStreamEncoder(o)
				var body []byte
				for _, ev := range g.Stream(rt, resp) {
					if body, err = stream.Encode(body, ev); err != nil {
						rt.Fatal(err)
					}
				}
				if body, err = stream.Close(body); err != nil {
					rt.Fatal(err)
				}
				if err := emitcheck.Stream(c.Dialect(), nil, body); err != nil {
					rt.Fatalf("stream: %v\n%s", err, body)
				}
				if c.Dialect() == dialectname.OpenAIResponses {
					if err := document.Stream(body); err != nil {
						rt.Fatalf("stream: %v\n%s", err, body)
					}
				}
			})
		})
	}
}

// otherDialect returns a dialect other than the codec's.
func otherDialect(c dialect.Codec) dragoman.Dialect {
	if c.Dialect() == dialectname.OpenAIChat {
		return dialectname.Anthropic
	}
	return dialectname.OpenAIChat
}

// TestProperty_AnyStreamIsInOrder encodes careless conversations. The order that strict clients
// need to follow a stream holds anyway.
func TestProperty_AnyStreamIsInOrder(t *testing.T) {
	for _, c := range append(slices.Clone(crosstest.Codecs), gemini.Codec{Array: true}) {
		t.Run(fmt.Sprintf("%T%+v", c, c), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				g := gen.Options{Plain: true}
				stream := c.NewStreamEncoder(dialect.EncodeOptions{Seed: "s"})
				var body []byte
				var err error
				for _, ev := range g.Stream(rt, g.Response().Draw(rt, "response")) {
					if body, err = stream.Encode(body, ev); err != nil {
						return // refused with an error
					}
				}
				if body, err = stream.Close(body); err != nil {
					return
				}
				if err := emitcheck.Order(c.Dialect(), body); err != nil {
					rt.Fatalf("%v\n%s", err, body)
				}
			})
		})
	}
}
