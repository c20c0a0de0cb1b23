package dialect_test

import (
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

func TestEveryEncoderRefusesNilEvents(t *testing.T) {
	for _, c := range crosstest.Codecs {
		for _, ev := range []dragoman.Event{
			nil, (*dragoman.ResponseStart)(nil), (*dragoman.PartStart)(nil), (*dragoman.PartDelta)(nil), (*dragoman.PartEnd)(nil),
			(*dragoman.ResponseEnd)(nil), (*dragoman.StreamError)(nil), (*dragoman.Chunk)(nil),
			&dragoman.PartStart{Part: (*dragoman.Text)(nil)}, &dragoman.PartEnd{Part: (*dragoman.ToolCall)(nil)},
		} {
			out, err := c.NewStreamEncoder(dialect.EncodeOptions{}).Encode([]byte("before"), ev)
			if !errors.Is(err, dragoman.ErrInvalid) || string(out) != "before" {
				t.Errorf("%s: %T gives %q, %v", c.Dialect(), ev, out, err)
			}
		}
	}
}
