package anthropic_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/internal/benchdata"
)

func BenchmarkCodec(b *testing.B) { benchdata.Codec(b, anthropic.Codec{}) }
