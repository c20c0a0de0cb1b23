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

// bookkeeping lists fields that affect neither the content of a response nor what runs.
var bookkeeping = []string{
	"model", "modelVersion", "responseId", "created", "created_at", "sequence_number", "summary_index", "annotations", "usage", "stop_sequence",
}

// fieldOffsets returns the offsets and names of the fields of a document, except bookkeeping.
func fieldOffsets(doc string) (at []int, names []string) {
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			continue
		}
		end := i + 1 + strings.IndexByte(doc[i+1:], '"') // only whole values contain escapes here
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

// otherValue returns a different value of the same JSON type.
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

// Some clients ignore the case of field names, as Go's encoding/json does; some take the first of
// two duplicate fields where we take the last. They must not read another stream in passed-through
// bytes than the one we decode. So an event with a duplicate of any field, exact or in another
// case, is re-encoded.
func TestStreamEventWithDuplicateFieldIsReencoded(t *testing.T) {
	for d, events := range crosstest.OneCallStreams {
		c := crosstest.CodecOf(d)
		for i, ev := range events {
			places, names := fieldOffsets(ev)
			for k, at := range places {
				twin := strings.ToUpper(names[k][:1]) + names[k][1:]
				other := otherValue(ev[at+len(names[k])+len(`"":`):])
				for _, name := range []string{twin, names[k]} {
					if name == "id" && d == dialectname.OpenAIChat && at == 1 {
						continue // the chunk id: every client takes the first
					}
					inserted := fmt.Sprintf(`"%s":%s,`, name, other)
					twisted := slices.Clone(events)
					twisted[i] = ev[:at] + inserted + ev[at:]
					got, _ := reencoded(t, c, crosstest.OnWire(t, d, twisted))
					_, payload, _ := strings.Cut(twisted[i], "{")
					if bytes.Contains(got, []byte(payload)) || name == twin && bytes.Contains(got, []byte(inserted)) {
						t.Errorf("%s: event %d with %s is passed through:\n%s", d, i, inserted, twisted[i])
					}
				}
			}
		}
	}
}

// reencoded re-encodes a stream in its own dialect.
func reencoded(t *testing.T, c dialect.Codec, wire []byte) ([]byte, dragoman.Report) {
	t.Helper()
	var w bytes.Buffer
	from, to := c.NewStreamDecoder(dialect.DecodeOptions{}), c.NewStreamEncoder(dialect.EncodeOptions{})
	_ = dialect.Translate(&w, to, from, bytes.NewReader(wire)) // a field of the wrong type may break the stream
	rep := from.Report()
	rep.Losses = append(rep.Losses, to.Report().Losses...)
	return w.Bytes(), rep
}
