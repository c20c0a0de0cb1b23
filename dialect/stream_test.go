package dialect_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

const chatHello = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}

data: [DONE]

`

func TestEventsRangesOverStream(t *testing.T) {
	c := openaichat.Codec{}
	resp, err := dragoman.Collect(dialect.Events(c.NewStreamDecoder(dialect.DecodeOptions{}), iotest.OneByteReader(strings.NewReader(chatHello))))
	if err != nil || resp.Text() != "Hello" {
		t.Errorf("got %q, %v", resp.Text(), err)
	}
	texts := 0
	for ev, err := range dialect.Events(c.NewStreamDecoder(dialect.DecodeOptions{}), strings.NewReader(chatHello)) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := ev.(*dragoman.PartDelta); ok && d.Kind == codes.KindText {
			texts++
			break // leaving the loop early is not an error
		}
	}
	if texts != 1 {
		t.Errorf("%d deltas", texts)
	}
}

func TestEventsEndWithTheStreamError(t *testing.T) {
	c := openaichat.Codec{}
	cut := chatHello[:200]
	boom := errors.New("connection reset")
	for name, r := range map[string]io.Reader{
		"cut":           strings.NewReader(cut),
		"a read error":  io.MultiReader(strings.NewReader(cut), iotest.ErrReader(boom)),
		"a broken line": strings.NewReader("data: {\"choices\": nonsense}\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			var last error
			failures := 0
			for ev, err := range dialect.Events(c.NewStreamDecoder(dialect.DecodeOptions{}), r) {
				if err != nil {
					last = err
				}
				if _, ok := ev.(*dragoman.StreamError); ok {
					failures++
				}
			}
			if last == nil || failures != 1 {
				t.Errorf("error %v, %d StreamErrors; want an error and one", last, failures)
			}
			if name == "a read error" && !errors.Is(last, boom) {
				t.Errorf("%v does not wrap the reader's error", last)
			}
			if name != "a broken line" && !errors.Is(last, dragoman.ErrIncompleteStream) {
				t.Errorf("%v does not wrap ErrIncompleteStream", last)
			}
		})
	}
}

// flushes counts the flushes to the client.
type flushes struct {
	bytes.Buffer
	n int
}

func (f *flushes) Flush() { f.n++ }

func TestTranslateFlushesEachEvent(t *testing.T) {
	var w flushes
	from, to := openaichat.Codec{}, anthropic.Codec{}
	err := dialect.Translate(&w, to.NewStreamEncoder(dialect.EncodeOptions{}), from.NewStreamDecoder(dialect.DecodeOptions{}), iotest.HalfReader(strings.NewReader(chatHello)))
	if err != nil {
		t.Fatal(err)
	}
	resp := crosstest.Collect(t, to, w.Bytes(), nil)
	if resp.Text() != "Hello" || w.n < 3 {
		t.Errorf("got %q in %d flushes", resp.Text(), w.n)
	}
	w = flushes{}
	err = dialect.Translate(&w, to.NewStreamEncoder(dialect.EncodeOptions{}), from.NewStreamDecoder(dialect.DecodeOptions{}), strings.NewReader(chatHello[:200]))
	if !errors.Is(err, dragoman.ErrIncompleteStream) || !strings.Contains(w.String(), "event: error") {
		t.Errorf("a cut stream gives %v and\n%s", err, w.String())
	}
}

func ExampleEvents() {
	decoder := openaichat.Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
	for ev, err := range dialect.Events(decoder, strings.NewReader(chatHello)) {
		if err != nil {
			fmt.Println("broken:", err)
			return
		}
		switch ev := ev.(type) {
		case *dragoman.PartDelta:
			if ev.Kind == codes.KindText {
				fmt.Print(ev.Text, "|")
			}
		case *dragoman.ResponseEnd:
			fmt.Println("", ev.Stop.Reason)
		}
	}
	// Output: Hel|lo| stop
}

func ExampleTranslate() {
	var client bytes.Buffer // an http.ResponseWriter in a server
	from, to := openaichat.Codec{}, anthropic.Codec{}
	encoder := to.NewStreamEncoder(dialect.EncodeOptions{Model: "my-model"})
	err := dialect.Translate(&client, encoder, from.NewStreamDecoder(dialect.DecodeOptions{}), strings.NewReader(chatHello))
	for line := range strings.Lines(client.String()) {
		if strings.HasPrefix(line, "event: ") {
			fmt.Print(line)
		}
	}
	fmt.Println(err)
	// Output:
	// event: message_start
	// event: content_block_start
	// event: content_block_delta
	// event: content_block_delta
	// event: content_block_stop
	// event: message_delta
	// event: message_stop
	// <nil>
}
