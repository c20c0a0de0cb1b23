package dialect_test

import (
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/targets"
)

// A target or a registry of another dialect must not be used: the body would mix two dialects.
func TestOptionsForAnotherDialectAreRefused(t *testing.T) {
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("hi")}}
	resp := &dragoman.Response{Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: "hi"}}}}}
	drop := func(dragoman.Event) error { return nil }
	for i, c := range crosstest.Codecs {
		other := crosstest.Codecs[(i+1)%len(crosstest.Codecs)]
		encoded, err := other.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		target := dialect.EncodeOptions{Target: targets.Target{Dialect: other.Dialect()}}
		registry := dialect.EncodeOptions{Registry: encoded.Registry}
		read := dialect.DecodeOptions{Registry: encoded.Registry}
		for what, do := range map[string]func() error{
			"encode request, other target":    func() error { _, err := c.EncodeRequest(req, target); return err },
			"encode request, other registry":  func() error { _, err := c.EncodeRequest(req, registry); return err },
			"encode response, other target":   func() error { _, err := c.EncodeResponse(resp, target); return err },
			"encode response, other registry": func() error { _, err := c.EncodeResponse(resp, registry); return err },
			"decode request":                  func() error { _, _, err := c.DecodeRequest([]byte(`{}`), read); return err },
			"decode response":                 func() error { _, _, err := c.DecodeResponse([]byte(`{}`), read); return err },
			"feed stream":                     func() error { return c.NewStreamDecoder(read).Feed([]byte("x"), drop) },
			"close stream decoder":            func() error { return c.NewStreamDecoder(read).Close(drop) },
			"encode stream": func() error {
				_, err := c.NewStreamEncoder(registry).Encode(nil, &dragoman.ResponseStart{})
				return err
			},
			"close stream encoder": func() error { _, err := c.NewStreamEncoder(target).Close(nil); return err },
		} {
			if err := do(); !errors.Is(err, dragoman.ErrInvalid) {
				t.Errorf("%s, %s: %v", c.Dialect(), what, err)
			}
		}
	}
}
