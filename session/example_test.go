package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
)

// A conversation is saved turn by turn, and continues in another process. It can be rewound,
// or continued in a branch.
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

	later, err := session.Open(ctx, store, "oslo") // possibly in another process
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

// One call connects a session to a model. Extensions of the model then act on it:
// automatically before a save, or on request.
func ExampleSession_Connect() {
	ctx := context.Background()
	config := &provider.Config{Providers: map[string]provider.Settings{"anthropic": {
		Extensions: map[string]json.RawMessage{extension.CompactName: json.RawMessage(`{"on_save": true, "keep": 2}`)},
	}}}
	model, err := config.Open("anthropic/claude-opus-5-5")
	if err != nil {
		log.Fatal(err)
	}
	s, err := session.Create(ctx, &session.Memory{}, session.Info{ID: "oslo"})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Connect(ctx, model); err != nil {
		log.Fatal(err)
	}
	for _, city := range []string{"Oslo", "Rome", "Lima"} {
		turn := []dragoman.Message{dragoman.UserText("Do I need a coat in " + city + "?"), dragoman.AssistantText("Yes.")}
		if err := s.Save(ctx, turn, nil); err != nil {
			log.Fatal(err)
		}
	}
	sent, err := s.MessagesForModel(ctx, model, "")
	if err != nil {
		log.Fatal(err)
	}
	stored, _, err := s.Load(ctx)
	fmt.Println(len(stored), "messages are stored, the model is sent", len(sent), err)

	err = s.Act(ctx, model, session.Action{ID: extension.CompactID, Params: json.RawMessage(`{"keep": 100}`)})
	fmt.Println("nothing to do:", err)
	// Output:
	// 6 messages are stored, the model is sent 2 <nil>
	// nothing to do: <nil>
}
