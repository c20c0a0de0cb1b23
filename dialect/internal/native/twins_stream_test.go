package native_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// bookkeeping are the members that neither say what an answer is nor what runs.
var bookkeeping = []string{
	"model", "modelVersion", "responseId", "created", "created_at", "sequence_number", "summary_index", "annotations", "usage", "stop_sequence",
}

// memberPlaces returns where in a document a member begins that says something,
// with its name.
func memberPlaces(doc string) (at []int, names []string) {
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			continue
		}
		end := i + 1 + strings.IndexByte(doc[i+1:], '"') // nothing here is escaped but whole values
		for doc[end-1] == '\\' {
			end += 1 + strings.IndexByte(doc[end+1:], '"')
		}
		name := doc[i+1 : end]
		if end+1 < len(doc) && doc[end+1] == ':' && !slices.Contains(bookkeeping, name) && !strings.HasSuffix(name, "okens") && !strings.HasSuffix(name, "_tokens") {
			at, names = append(at, i), append(names, name)
		}
		i = end
	}
	return at, names
}

// otherValue is a value of the type of the one that follows.
func otherValue(value string) string {
	switch c := value[0]; {
	case c == '{':
		return `{"evil":1}`
	case c == '[':
		return `[{"evil":1}]`
	case c >= '0' && c <= '9':
		return "77"
	case c == 't':
		return "false"
	case c == 'f':
		return "true"
	default:
		return `"evil"`
	}
}

// A client that ignores case, as Go's own JSON does, or that takes the first of
// two members where we take the last, must not read another stream in the bytes
// it is passed than the one that we tell of. So no such event is passed on as it
// came, whichever of its members stands there again.
func TestNoStreamIsPassedOnWithAMemberThatStandsTwiceOrDiffersOnlyInCase(t *testing.T) {
	for d, events := range crosstest.TwinStreams {
		c := crosstest.CodecOf(d)
		for i, ev := range events {
			places, names := memberPlaces(ev)
			for k, at := range places {
				twin := strings.ToUpper(names[k][:1]) + names[k][1:]
				other := otherValue(ev[at+len(names[k])+len(`"":`):])
				for _, name := range []string{twin, names[k]} {
					if name == "id" && d == dialectname.OpenAIChat && at == 1 {
						continue // of the chunk, of which the first counts for everybody
					}
					inserted := fmt.Sprintf(`"%s":%s,`, name, other)
					twisted := slices.Clone(events)
					twisted[i] = ev[:at] + inserted + ev[at:]
					got, _ := passedOn(t, c, crosstest.OnWire(t, d, twisted))
					_, payload, _ := strings.Cut(twisted[i], "{")
					if bytes.Contains(got, []byte(payload)) || name == twin && bytes.Contains(got, []byte(inserted)) {
						t.Errorf("%s: event %d with %s is passed on:\n%s", d, i, inserted, twisted[i])
					}
				}
			}
		}
	}
}

// passedOn sends a stream through the codec of its own dialect.
func passedOn(t *testing.T, c dialect.Codec, wire []byte) ([]byte, dragoman.Report) {
	t.Helper()
	var w bytes.Buffer
	from, to := c.NewStreamDecoder(dialect.DecodeOptions{}), c.NewStreamEncoder(dialect.EncodeOptions{})
	_ = dialect.Translate(&w, to, from, bytes.NewReader(wire)) // a member of the wrong type may break it
	rep := from.Report()
	rep.Losses = append(rep.Losses, to.Report().Losses...)
	return w.Bytes(), rep
}
