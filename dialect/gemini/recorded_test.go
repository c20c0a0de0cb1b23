package gemini_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
)

// The package dialect tests that recorded traffic keeps its meaning in all
// dialects. This file tests what only this dialect promises.

func eachResponse(t *testing.T, each func(t *testing.T, x *testkit.Exchange, stream bool)) {
	t.Helper()
	n := 0
	for _, x := range testkit.Recordings(t, "gemini_generateContent") {
		if x.Resp == nil || x.Status != 200 {
			continue
		}
		n++
		each(t, &x, !strings.HasPrefix(strings.TrimSpace(*x.Resp), "{"))
	}
	t.Logf("%d responses", n)
}

func TestRecordedResponseEqualsSingleChunkStream(t *testing.T) {
	eachResponse(t, func(t *testing.T, x *testkit.Exchange, stream bool) {
		if stream {
			return
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(*x.Resp)); err != nil {
			t.Fatal(err)
		}
		whole, _, err := codec.DecodeResponse(compact.Bytes(), dialect.DecodeOptions{})
		if err != nil {
			t.Fatalf("%s: %v", x.ID(), err)
		}
		if diff := cmp.Diff(whole, collect(t, sseStream(compact.String())), ignoreSidecars); diff != "" {
			t.Errorf("%s: the stream decodes differently: %s", x.ID(), diff)
		}
	})
}

func TestRecordedStreamReencodesToValidStream(t *testing.T) {
	eachResponse(t, func(t *testing.T, x *testkit.Exchange, stream bool) {
		if !stream {
			return
		}
		evs, err := drain(dialect.DecodeOptions{}, []byte(*x.Resp))
		if err != nil {
			t.Errorf("%s: %v", x.ID(), err)
			return
		}
		out, _ := encodeEvents(t, dialect.EncodeOptions{}, codectest.Bare(evs)...)
		if err := checkWire([]byte(out)); err != nil {
			t.Errorf("%s: %v", x.ID(), err)
		}
	})
}
