package postgres_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/postgres"
	"github.com/dragoman-go/dragoman/session/sessiontest"
)

func TestG7_PostgreSQLNotesConform(t *testing.T) {
	sessiontest.RunNotes(t, func(t *testing.T, now func() time.Time) session.Notes {
		return open(t, schema(t), postgres.Options{Now: now}).Notes()
	})
}

// A server may use the isolation level serializable by default.
func TestG7_NotesWorkWithSerializableServer(t *testing.T) {
	sessiontest.RunNotes(t, func(t *testing.T, now func() time.Time) session.Notes {
		u, err := url.Parse(schema(t))
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("default_transaction_isolation", "serializable")
		u.RawQuery = q.Encode()
		return open(t, u.String(), postgres.Options{Now: now, Relaxed: true}).Notes()
	})
}

func TestG7_GatewaysShareTheNotesOfADatabase(t *testing.T) {
	url := schema(t)
	one, two := open(t, url, postgres.Options{}), open(t, url, postgres.Options{})
	if err := one.Notes().Put(t.Context(), "k", []byte("v"), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if v, found, err := two.Notes().Get(t.Context(), "k"); err != nil || !found || string(v) != "v" {
		t.Error(string(v), found, err)
	}
}
