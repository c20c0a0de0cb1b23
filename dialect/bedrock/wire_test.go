package bedrock_test

import (
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
)

// checkWire checks a stream against what the API itself sends.
func checkWire(stream []byte) error { return emitcheck.Order(dialectname.Bedrock, stream) }
