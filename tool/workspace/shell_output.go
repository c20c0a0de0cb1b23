package workspace

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/text/words"
	"github.com/dragoman-go/dragoman/tool"
)

// boundedOutput keeps the beginning and the end of what is written to it, and
// passes it on as it comes, up to the same bound.
type boundedOutput struct {
	most int
	tell func(text string)

	mu   sync.Mutex
	head []byte
	// tail is a ring once it is full; next is where its oldest byte is.
	tail  []byte
	next  int
	total int64
	// told counts what was passed on, part is the beginning of a line.
	told int
	part []byte
}

// Write keeps and passes on. It never fails.
func (o *boundedOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(p))
	o.pass(p)
	rest := p
	if room := (o.most+1)/2 - len(o.head); room > 0 {
		n := min(room, len(rest))
		o.head = append(o.head, rest[:n]...)
		rest = rest[n:]
	}
	size := o.most / 2
	if len(rest) > size {
		rest = rest[len(rest)-size:]
	}
	if room := size - len(o.tail); room > 0 {
		n := min(room, len(rest))
		o.tail = append(o.tail, rest[:n]...)
		rest = rest[n:]
	}
	for len(rest) > 0 {
		n := copy(o.tail[o.next:], rest)
		rest = rest[n:]
		o.next = (o.next + n) % size
	}
	return len(p), nil
}

// maxHeld is how long a line that has not ended is held back, in bytes.
const maxHeld = 4096

// pass passes whole lines on: who shows them takes secrets out of each piece, and
// must not get the halves of one. A very long line goes on in whole characters.
func (o *boundedOutput) pass(p []byte) {
	if o.tell == nil || o.told >= o.most {
		return
	}
	text := append(o.part, p...)
	whole := text[:bytes.LastIndexAny(text, "\n\r")+1]
	if len(text)-len(whole) >= maxHeld {
		whole = wholeRunes(text)
	}
	o.part = append([]byte(nil), text[len(whole):]...)
	o.passOn(whole)
}

// end passes on what was held back.
func (o *boundedOutput) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tell != nil {
		o.passOn(o.part)
		o.part = nil
	}
}

func (o *boundedOutput) passOn(text []byte) {
	text = text[:min(len(text), o.most-o.told)]
	o.told += len(text)
	if len(text) > 0 {
		o.tell(plain(string(text)))
	}
}

// String is what was kept, with a line for what was not.
func (o *boundedOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := string(o.tail[o.next:]) + string(o.tail[:o.next])
	missing := o.total - int64(len(o.head)) - int64(len(tail))
	if missing <= 0 {
		return string(o.head) + tail
	}
	return fmt.Sprintf("%s\n[%s not shown]\n%s", o.head, words.Count(missing, "byte"), tail)
}

func report(ctx context.Context, text string) {
	tool.Report(ctx, &dragoman.Text{Text: text})
}
