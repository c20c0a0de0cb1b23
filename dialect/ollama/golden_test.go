package ollama_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

func TestGolden(t *testing.T) {
	codectest.Golden(t, codectest.Wire(codec, func(stream []byte) error { return emitcheck.Order(dialectname.Ollama, stream) }))
}
