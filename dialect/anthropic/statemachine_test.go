package anthropic_test

import (
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
)

// checkWire reads a stream like the strictest clients (quirk C20).
func checkWire(stream []byte) error { return emitcheck.Order(dialectname.Anthropic, stream) }
