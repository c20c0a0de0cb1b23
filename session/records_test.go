package session_test

import (
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

func TestT10_RecordsAreSavedWithTheirMessages(t *testing.T) {
	for name, store := range stores(t) {
		s := created(t, store)
		save := func(run, call string) {
			t.Helper()
			messages := []dragoman.Message{dragoman.UserText(call)}
			if err := s.SaveRecords(t.Context(), messages, []byte(`{"v":1}`), run, []tool.Record{{CallID: call, Tool: "look"}}); err != nil {
				t.Fatal(err)
			}
		}
		odd := "r\n\xff" // ids of runs may hold anything
		save("r", "1")
		save(odd, "2")
		head := s.Head()
		save("r", "3")
		ids := func(run string) (out string) {
			t.Helper()
			records, err := s.Records(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				out += r.CallID
			}
			return out
		}
		if got := ids("r") + "," + ids(odd) + "," + ids("none"); got != "13,2," {
			t.Errorf("%s: records %s", name, got)
		}
		if err := s.Rewind(t.Context(), head); err != nil {
			t.Fatal(err)
		}
		if got := ids("r"); got != "1" {
			t.Errorf("%s: after a rewind: records %s", name, got)
		}
		if messages, state, err := s.Load(t.Context()); err != nil || len(messages) != 2 || string(state) != `{"v":1}` {
			t.Errorf("%s: %v %s %v", name, messages, state, err)
		}
		if err := s.Append(t.Context(), session.Entry{Kind: "records", Body: []byte(`{}`)}); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: an application writes records: %v", name, err)
		}
	}
}
