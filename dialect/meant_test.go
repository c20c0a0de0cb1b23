package dialect_test

import (
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/targets"
)

// What was meant for one dialect makes no sense in another: tools and calls
// would stand in a body in the words of two.
func TestOptionsThatAreMeantForAnotherDialectAreRefused(t *testing.T) {
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("hi")}}
	resp := &dragoman.Response{Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: "hi"}}}}}
	drop := func(dragoman.Event) error { return nil }
	for i, c := range crosstest.Codecs {
		other := crosstest.Codecs[(i+1)%len(crosstest.Codecs)]
		asked, err := other.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		target := dialect.EncodeOptions{Target: targets.Target{Dialect: other.Dialect()}}
		registry := dialect.EncodeOptions{Registry: asked.Registry}
		read := dialect.DecodeOptions{Registry: asked.Registry}
		for what, do := range map[string]func() error{
			"a request with another's target":   func() error { _, err := c.EncodeRequest(req, target); return err },
			"a request with another's registry": func() error { _, err := c.EncodeRequest(req, registry); return err },
			"an answer with another's target":   func() error { _, err := c.EncodeResponse(resp, target); return err },
			"an answer with another's registry": func() error { _, err := c.EncodeResponse(resp, registry); return err },
			"reading a request":                 func() error { _, _, err := c.DecodeRequest([]byte(`{}`), read); return err },
			"reading an answer":                 func() error { _, _, err := c.DecodeResponse([]byte(`{}`), read); return err },
			"a stream":                          func() error { return c.NewStreamDecoder(read).Feed([]byte("x"), drop) },
			"the end of a stream":               func() error { return c.NewStreamDecoder(read).Close(drop) },
			"writing a stream": func() error {
				_, err := c.NewStreamEncoder(registry).Encode(nil, &dragoman.ResponseStart{})
				return err
			},
			"ending one": func() error { _, err := c.NewStreamEncoder(target).Close(nil); return err },
		} {
			if err := do(); !errors.Is(err, dragoman.ErrInvalid) {
				t.Errorf("%s, %s: %v", c.Dialect(), what, err)
			}
		}
	}
}
