package workspace

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

// boundedOutput stores the beginning and the end of the output of a command and reports it
// while the command runs, up to the same limit.
type boundedOutput struct {
	most   int
	report func(text string)

	mu   sync.Mutex
	head []byte
	// tail is a ring buffer once it is full; next is the index of its oldest byte.
	tail  []byte
	next  int
	total int64
	// reported counts the reported bytes; part is the beginning of an incomplete line.
	reported int
	part     []byte
}

// Write stores and reports p. It never fails.
func (o *boundedOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(p))
	o.reportLines(p)
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

// maxHeld is the length in bytes up to which an incomplete line is held back.
const maxHeld = 4096

// reportLines reports whole lines. Observers redact secrets in each piece, so a piece must not
// end within one. A very long line is reported in whole characters.
func (o *boundedOutput) reportLines(p []byte) {
	if o.report == nil || o.reported >= o.most {
		return
	}
	text := append(o.part, p...)
	whole := text[:bytes.LastIndexAny(text, "\n\r")+1]
	if len(text)-len(whole) >= maxHeld {
		whole = wholeRunes(text)
	}
	o.part = append([]byte(nil), text[len(whole):]...)
	o.reportText(whole)
}

// end reports the rest that was held back.
func (o *boundedOutput) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.report != nil {
		o.reportText(o.part)
		o.part = nil
	}
}

func (o *boundedOutput) reportText(text []byte) {
	text = text[:min(len(text), o.most-o.reported)]
	o.reported += len(text)
	if len(text) > 0 {
		o.report(plain(string(text)))
	}
}

// String returns the stored output, with a line for the part that was left out.
func (o *boundedOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := string(o.tail[o.next:]) + string(o.tail[:o.next])
	missing := o.total - int64(len(o.head)) - int64(len(tail))
	if missing <= 0 {
		return string(o.head) + tail
	}
	return fmt.Sprintf("%s\n[%s not shown]\n%s", o.head, textkit.Count(missing, "byte"), tail)
}

func report(ctx context.Context, text string) {
	tool.Report(ctx, &dragoman.Text{Text: text})
}
