package gemini_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// TestGolden runs the files in testdata; see [codectest.Wire].
func TestGolden(t *testing.T) { codectest.Golden(t, codectest.Wire(codec, checkWire)) }
