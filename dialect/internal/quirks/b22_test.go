package quirks_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// A tool name that the model prefixed is restored in a whole response and in every event of a
// stream, and the change is reported.
func TestQuirkB22_PrefixedNameIsRestored(t *testing.T) {
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Tools: []dragoman.ToolSpec{
		{Kind: codes.ToolFunction, Name: "read_file", Parameters: []byte(`{"type":"object"}`)},
	}}
	decorated := &dragoman.Response{
		ID: "r", Model: "m", Stop: dragoman.Stop{Reason: dragoman.StopToolCalls},
		Usage: dragoman.Usage{Input: dragoman.Counted(1), Output: dragoman.Counted(1)},
		Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{
			&dragoman.ToolCall{ID: "call_1", Name: "functions_x", Arguments: `{"path":"a"}`},
		}}},
	}
	for _, c := range crosstest.Codecs {
		t.Run(string(c.Dialect()), func(t *testing.T) {
			sent, err := c.EncodeRequest(req, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			o := dialect.DecodeOptions{Registry: sent.Registry}
			undo := func(b []byte) []byte {
				return []byte(strings.ReplaceAll(string(b), "functions_x", "functions.Read_File"))
			}

			enc, err := c.EncodeResponse(decorated, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			whole, rep, err := c.DecodeResponse(undo(enc.Body), o)
			if err != nil {
				t.Fatal(err)
			}
			if calls := whole.ToolCalls(); len(calls) != 1 || calls[0].Name != "read_file" {
				t.Errorf("the response calls %+v", calls)
			}
			if !strings.Contains(rep.String(), "Read_File") {
				t.Errorf("nothing is reported: %s", rep.String())
			}

			d := c.NewStreamDecoder(o)
			var names []string
			emit := func(ev dragoman.Event) error {
				switch ev := ev.(type) {
				case *dragoman.PartStart:
					names = append(names, ev.Part.(*dragoman.ToolCall).Name)
				case *dragoman.PartEnd:
					names = append(names, ev.Part.(*dragoman.ToolCall).Name)
				}
				return nil
			}
			if err := d.Feed(crosstest.StreamOf(t, c.Dialect(), undo(enc.Body)), emit); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(emit); err != nil {
				t.Fatal(err)
			}
			if strings.Join(names, " ") != "read_file read_file" {
				t.Errorf("the stream names %q", names)
			}
			if rep := d.Report(); !strings.Contains(rep.String(), "Read_File") {
				t.Errorf("nothing is reported for the stream: %s", rep.String())
			}
		})
	}
}
