package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dragoman-go/dragoman/internal/steady"
	"github.com/dragoman-go/dragoman/session"
)

func main(m *testing.M) { steady.Main(m) }

func openPostgres(context.Context, string) (session.Store, error) {
	return nil, errors.New("not built yet")
}
