package crosstest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// ConvertRequest decodes a request in one dialect and encodes it in another.
func ConvertRequest(t *testing.T, from, to dialect.Codec, body string) (map[string]json.RawMessage, dragoman.Report) {
	t.Helper()
	req, _, err := from.DecodeRequest([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	enc, err := to.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal(enc.Body, &out); err != nil {
		t.Fatal(err)
	}
	return out, enc.Report
}

// FullResponse returns a response of an unknown dialect, with all fields that any dialect requires.
func FullResponse() *dragoman.Response {
	return &dragoman.Response{
		ID: "r-1", Model: "m", Created: time.Unix(1794708826, 0).UTC(),
		Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: "a"}}}},
		Stop:   dragoman.Stop{Reason: dragoman.StopEnd},
		Usage:  dragoman.Usage{Input: dragoman.Counted(1), Output: dragoman.Counted(1)},
		Origin: &dragoman.Origin{Dialect: "nobody"},
	}
}

// WithoutMessages reports whether a codec refused a request because its body would have no
// messages.
func WithoutMessages(err error) bool {
	return errors.Is(err, dragoman.ErrInvalid) && strings.Contains(err.Error(), "at least one message is required")
}

// AllParts returns the parts of all messages, in order.
func AllParts(ms []dragoman.Message) (out []dragoman.Part) {
	for i := range ms {
		out = append(out, ms[i].Parts...)
	}
	return out
}

// LossesAt returns the losses at a pointer or below it.
func LossesAt(rep dragoman.Report, path string) (at []dragoman.Loss) {
	for _, l := range rep.Losses {
		if l.Path == path || strings.HasPrefix(l.Path, path+"/") {
			at = append(at, l)
		}
	}
	return at
}
