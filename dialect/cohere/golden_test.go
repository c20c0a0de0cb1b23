package cohere_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

func TestGolden(t *testing.T) { codectest.Golden(t, codectest.Wire(codec, checkStream)) }
