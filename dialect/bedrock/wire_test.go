package bedrock_test

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
)

// checkWire holds a stream against what the API itself sends.
func checkWire(stream []byte) error { return emitcheck.Order(dragoman.Bedrock, stream) }
