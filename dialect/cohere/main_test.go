package cohere_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/steady"
)

func TestMain(m *testing.M) { steady.Main(m) }
