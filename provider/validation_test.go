package provider_test

import (
	"context"
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/targets"
)

// An encoder validates a request unless it was normalized, which validates it.
func TestEncoderValidatesRequestsOnce(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		req := newRequest()
		req.Sampling.TopP = new(dragoman.Number(`"1"`))
		if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("encoded: %v", err)
		}
		registry := all.Registry(interop.Options{Target: targets.Target{Dialect: codec.Dialect()}, Limits: codec.Limits(), Tools: req.Tools})
		if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{Registry: registry}); !errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("encoded with a registry: %v", err)
		}
		if _, err := wirekit.EncodeNormalized(codec, req, dialect.EncodeOptions{Registry: registry}); errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("validated again: %v", err)
		}
		other := *req
		if _, err := codec.EncodeRequest(&other, dialect.EncodeOptions{Registry: registry}); !errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("another request: %v", err)
		}
	})
}

// firstPart is an extension that panics if the first part of a request is nil.
type firstPart struct{}

func (firstPart) Info() extension.Info { return extension.Info{Name: "first_part"} }

func (firstPart) Prepare(_ context.Context, x *extension.Exchange) error {
	_ = x.Request.Messages[0].Parts[0].Kind()
	return nil
}

func TestInvalidRequestErrorPrecedesExtensionErrors(t *testing.T) {
	set, err := extension.NewSet(firstPart{})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, openaichat.Codec{}, respond(textResponse("Yes.")))
	c := s.client(&provider.Client{Extensions: provider.Extensions{Set: set}})
	if _, err := c.Generate(t.Context(), newRequest()); err != nil {
		t.Fatal(err)
	}
	req := newRequest()
	req.Messages[0].Parts[0] = nil
	if _, err := c.Generate(t.Context(), req); !errors.Is(err, dragoman.ErrInvalid) || errors.As(err, new(*extension.Error)) {
		t.Errorf("the error is %v", err)
	}
}
