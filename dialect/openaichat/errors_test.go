package openaichat_test

import (
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
)

func TestOllamaAPIErrorIsClassifiedByStatus(t *testing.T) {
	body := []byte(`{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`)
	for status, want := range map[int]dragoman.ErrorClass{404: dragoman.ErrorNotFound, 400: dragoman.ErrorBadRequest, 429: dragoman.ErrorRateLimit, 500: dragoman.ErrorServer, 0: dragoman.ErrorServer} {
		if got := (openaichat.Codec{}).DecodeError(status, nil, body); got.Class != want {
			t.Errorf("%d: %s", status, got.Class)
		}
	}
}
