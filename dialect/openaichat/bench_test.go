package openaichat_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
)

func BenchmarkCodec(b *testing.B) { benchdata.Codec(b, openaichat.Codec{}) }
