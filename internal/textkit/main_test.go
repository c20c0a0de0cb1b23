package textkit

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
