package session_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
)

// A conversation is saved turn by turn, and goes on in another process. One that
// was taken too far is rewound, or goes on in a branch.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(ctx, filepath.Join(dir, "sessions.db"), sqlite.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	first, err := session.Create(ctx, store, session.Info{ID: "oslo"})
	if err != nil {
		log.Fatal(err)
	}
	turn := []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?"), dragoman.AssistantText("Yes.")}
	if err := first.Save(ctx, turn, []byte(`{"turn":1}`)); err != nil {
		log.Fatal(err)
	}

	later, err := session.Open(ctx, store, "oslo") // in another process, say
	if err != nil {
		log.Fatal(err)
	}
	messages, state, err := later.Load(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(messages), "messages, state", string(state))

	point := later.Head()
	if err := later.Save(ctx, []dragoman.Message{dragoman.UserText("And in Rome?")}, nil); err != nil {
		log.Fatal(err)
	}
	if err := later.Rewind(ctx, point); err != nil {
		log.Fatal(err)
	}
	messages, _, err = later.Load(ctx)
	fmt.Println(len(messages), "messages after the rewind", err)

	err = first.Save(ctx, []dragoman.Message{dragoman.UserText("Still there?")}, nil)
	fmt.Println("the first process lost the session:", errors.Is(err, session.ErrConflict))
	// Output:
	// 2 messages, state {"turn":1}
	// 2 messages after the rewind <nil>
	// the first process lost the session: true
}
