package history_test

import (
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/history"
)

// Normalize pools its memory. Nothing of one conversation may show up in another, even after one that
// failed.
func TestPooledMemoryDoesNotLeakBetweenConversations(t *testing.T) {
	o := history.Options{Limits: strict()}
	// The results are misplaced, so that the list is rearranged.
	good := &dragoman.Request{Model: "m", Messages: []dragoman.Message{
		user("a"), calls("1", "2"), results(result("2", "two")), user("b"), results(result("1", "one")), calls("3"), results(result("3", "three")), user("c"),
	}}
	open := &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("x"), calls("4"), user("y"), user("z"), calls("5"), user("u"), user("v"), user("w")}}
	first, _, err := history.Normalize(good, o)
	if err != nil {
		t.Fatal(err)
	}
	want := script(first.Messages)
	for range 20 {
		if _, _, err := history.Normalize(open, o); err == nil {
			t.Fatal("a call without a result is accepted")
		}
		got, _, err := history.Normalize(good, o)
		if err != nil || script(got.Messages) != want {
			t.Fatalf("%v\nbefore:\n%s\nnow:\n%s", err, want, script(got.Messages))
		}
		if script(first.Messages) != want {
			t.Fatalf("the earlier result has changed to\n%s", script(first.Messages))
		}
	}
}
