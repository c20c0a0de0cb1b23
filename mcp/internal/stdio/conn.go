package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

const (
	defaultMaxMessage = 16 << 20
	maxNoise          = 10  // lines that are logged and kept
	maxNoiseText      = 200 // bytes of each
	maxNotices        = 64  // cancellations that wait to be written
	// settle limits waiting for the second of two events that belong together: the end of
	// the output and the end of the process.
	settle = time.Second
)

// Conn is a connection over streams.
type Conn struct {
	handler rpc.Handler
	max     int
	log     *slog.Logger
	in      io.ReadCloser
	out     io.WriteCloser
	process *process // nil for streams without one
	grace   time.Duration

	pending rpc.Pending
	modern  atomic.Bool
	lines   chan *line
	notices chan []byte

	lost      chan error    // the first reason of the end, from any goroutine
	ending    chan struct{} // closed when the end begins
	readDone  chan struct{}
	done      chan struct{} // closed when calls have failed
	finished  chan struct{} // closed when everything has ended
	reason    error         // valid after done
	closeOnce sync.Once

	mu    sync.Mutex
	noise []string
	lossy int
}

// line is a message to write.
type line struct {
	text    []byte
	written chan error
	id      rpc.ID
	// incomplete is set if the server cannot have read the whole message.
	incomplete atomic.Bool
}

// newConn starts a connection. process may be nil.
func newConn(in io.ReadCloser, out io.WriteCloser, h rpc.Handler, p *process, maxMessage int, grace time.Duration, log *slog.Logger) *Conn {
	c := &Conn{
		handler: h, in: in, out: out, process: p, max: maxMessage, grace: grace, log: log,
		lines: make(chan *line), notices: make(chan []byte, maxNotices),
		lost: make(chan error, 1), ending: make(chan struct{}), readDone: make(chan struct{}),
		done: make(chan struct{}), finished: make(chan struct{}),
	}
	if c.max <= 0 {
		c.max = defaultMaxMessage
	}
	if c.grace <= 0 {
		c.grace = 3 * time.Second
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	go c.read()
	go c.write()
	go c.supervise()
	return c
}

// Call implements [rpc.Conn].
func (c *Conn) Call(ctx context.Context, r *rpc.Request) (json.RawMessage, error) {
	notDelivered := func(err error) (json.RawMessage, error) {
		if r.NotDelivered != nil {
			r.NotDelivered()
		}
		return nil, err
	}
	if ctx.Err() != nil {
		return notDelivered(context.Cause(ctx))
	}
	call, err := c.pending.Add(r)
	if err != nil {
		return notDelivered(err)
	}
	defer c.pending.Drop(call)
	text, err := rpc.AppendRequest(nil, call.ID, r.Method, r.Params)
	if err != nil {
		return notDelivered(err)
	}
	l := &line{text: text, written: make(chan error, 1), id: call.ID}
	if err := c.hand(ctx, l); err != nil {
		return notDelivered(err)
	}
	result, answered, err := call.Wait(ctx)
	if !answered && !c.pending.Drop(call) {
		result, answered, err = call.Wait(context.WithoutCancel(ctx)) // it just arrived
	}
	if !answered && r.Method != rpc.MethodInitialize {
		c.cancel(call.ID)
	}
	if err != nil && l.incomplete.Load() {
		if wait(c.done, 2*settle) { // the end of the program explains more than a broken pipe
			err = c.Err()
		}
		return notDelivered(err)
	}
	return result, err
}

// cancel announces to the server that the client no longer waits. It does not wait for a server
// that reads slowly.
func (c *Conn) cancel(id rpc.ID) {
	text, err := rpc.AppendNotification(nil, rpc.MethodCancelled, json.RawMessage(`{"requestId":`+string(id)+`,"reason":"the client no longer waits"}`))
	if err != nil {
		return
	}
	select {
	case c.notices <- text:
	default:
	}
}

// Notify implements [rpc.Conn].
func (c *Conn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	text, err := rpc.AppendNotification(nil, method, params)
	return c.send(ctx, text, err)
}

// Respond implements [rpc.Conn].
func (c *Conn) Respond(ctx context.Context, id rpc.ID, result json.RawMessage, failure *rpc.Error) error {
	if c.modern.Load() {
		return errors.New("servers of this revision send no requests, so there is nothing to answer")
	}
	var text []byte
	var err error
	if failure != nil {
		text, err = rpc.AppendError(nil, id, failure)
	} else {
		text, err = rpc.AppendResult(nil, id, result)
	}
	return c.send(ctx, text, err)
}

func (c *Conn) send(ctx context.Context, text []byte, err error) error {
	if err != nil {
		return err
	}
	l := &line{text: text, written: make(chan error, 1)}
	if err := c.hand(ctx, l); err != nil {
		return err
	}
	select {
	case err := <-l.written:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
		return c.reason
	}
}

// hand gives a line to the writer. After an error, nothing of it was written.
func (c *Conn) hand(ctx context.Context, l *line) error {
	select {
	case c.lines <- l:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
		return c.reason
	}
}

// SetRevision implements [rpc.Conn].
func (c *Conn) SetRevision(revision string) { c.modern.Store(rpc.Modern(revision)) }

// Done implements [rpc.Conn].
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err implements [rpc.Conn].
func (c *Conn) Err() error {
	select {
	case <-c.done:
		return c.reason
	default:
		return nil
	}
}

// Close implements [rpc.Conn].
func (c *Conn) Close() error {
	c.lose(rpc.ErrClosed)
	<-c.finished
	return nil
}

// Stderr returns the last 64 KiB that the program wrote to standard error, as they are.
func (c *Conn) Stderr() string {
	if c.process == nil {
		return ""
	}
	return c.process.stderr.String()
}

// Noise returns the number of lines on standard output that were not messages, and the
// beginnings of the first ones.
func (c *Conn) Noise() (n int, first []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lossy, slices.Clone(c.noise)
}

// lose begins the end. Only the first reason counts.
func (c *Conn) lose(err error) {
	c.closeOnce.Do(func() {
		c.lost <- err
		close(c.ending)
	})
}

func (c *Conn) write() {
	for {
		var l *line
		select {
		case l = <-c.lines:
		case text := <-c.notices:
			l = &line{text: text, written: make(chan error, 1)}
		case <-c.done:
			return
		}
		size := len(l.text)
		n, err := c.out.Write(append(l.text, '\n'))
		if err != nil {
			l.incomplete.Store(n < size)
			err = fmt.Errorf("%w: writing to the server: %w", rpc.ErrLost, err)
			if n < size {
				c.pending.DeliverError(l.id, err)
			}
			c.lose(err)
		}
		l.written <- err
		if err != nil {
			return
		}
	}
}

func (c *Conn) read() {
	defer close(c.readDone)
	r := newLineReader(c.in, c.max)
	for {
		text, long, err := r.next()
		switch {
		case long != nil:
			c.tooLong(long)
		case len(text) > 0:
			c.receive(text)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.lose(fmt.Errorf("%w: reading from the server: %w", rpc.ErrLost, err))
			} else {
				c.lose(fmt.Errorf("%w: the server closed its output", rpc.ErrLost))
			}
			return
		}
	}
}

// receive handles a line that is not empty.
func (c *Conn) receive(text []byte) {
	if text[0] != '{' && text[0] != '[' {
		c.note(text)
		return
	}
	messages, err := rpc.Decode(text)
	if err != nil {
		c.note(text)
		return
	}
	for i := range messages {
		c.dispatch(&messages[i])
	}
}

func (c *Conn) dispatch(m *rpc.Message) {
	switch {
	case m.IsResponse():
		if c.pending.Deliver(m) == rpc.Unknown {
			c.log.Debug("the server answered a request that was never sent", "id", string(m.ID))
		}
	case m.IsRequest() && c.modern.Load():
		c.log.Warn("the server sent a request, which its revision does not allow", "method", textkit.Visible(m.Method))
	case m.IsRequest():
		c.handler.Request(rpc.Incoming{ID: m.ID, Method: m.Method, Params: m.Params})
	case m.Method == rpc.MethodCancelled && c.modern.Load():
		// It can only mean a request of this side, as a server of this revision sends none.
		c.pending.DeliverError(rpc.FieldID(m.Params, "requestId"), rpc.ErrEnded)
	default:
		in := rpc.Incoming{Method: m.Method, Params: m.Params}
		if id := rpc.MetaID(m.Params, rpc.MetaSubscriptionID); id != "" {
			in.During = c.pending.Find(id)
		}
		c.handler.Notification(in)
	}
}

// note counts a line that is not a message (pitfall K5).
func (c *Conn) note(text []byte) {
	if len(text) > maxNoiseText {
		text = text[:maxNoiseText]
	}
	c.mu.Lock()
	c.lossy++
	n := c.lossy
	visible := textkit.Visible(strings.ToValidUTF8(string(text), "\ufffd"))
	if n <= maxNoise {
		c.noise = append(c.noise, visible)
	}
	c.mu.Unlock()
	if n <= maxNoise {
		c.log.Warn("the server wrote a line to standard output that is not a message", "text", visible, "line", n)
	}
}

// tooLong handles a message above the limit: the call that waits for it fails, and the others go
// on.
func (c *Conn) tooLong(l *longLine) {
	err := fmt.Errorf("%w of %s", rpc.ErrTooLarge, textkit.Count(c.max, "byte"))
	id := l.id()
	if id == "" {
		id, _ = c.pending.Only()
	}
	if c.pending.DeliverError(id, err) != rpc.Delivered {
		c.note(bytes.TrimSpace(l.head))
	}
}

// supervise waits for the end and carries it out.
func (c *Conn) supervise() {
	defer close(c.finished)
	var exited <-chan struct{} // never, without a process
	if c.process != nil {
		exited = c.process.exited
	}
	var reason error
	select {
	case reason = <-c.lost:
	case <-exited:
		// What the program wrote before its end still counts.
		wait(c.readDone, settle)
		c.lose(fmt.Errorf("%w: the server ended", rpc.ErrLost))
		reason = <-c.lost
	}
	if errors.Is(reason, rpc.ErrLost) && c.process != nil {
		wait(exited, settle)
		reason = c.process.explain(reason)
	}
	c.reason = reason
	close(c.done)
	c.pending.Fail(reason)
	c.shutDown(exited)
}

// shutDown ends the process and whatever it started (pitfall K6): it closes the input, waits,
// asks with a signal, waits, and kills.
func (c *Conn) shutDown(exited <-chan struct{}) {
	_ = c.out.Close() // a broken pipe is no news now
	if c.process == nil {
		wait(c.readDone, c.grace)
		_ = c.in.Close()
		wait(c.readDone, settle)
		return
	}
	// All that inherited the output have ended when it is closed.
	ended := make(chan struct{})
	go func() {
		<-exited
		<-c.readDone
		close(ended)
	}()
	if !wait(ended, c.grace) {
		c.process.group.terminate()
		wait(ended, c.grace)
	}
	c.process.group.kill() // also processes that do not hold the output
	wait(exited, settle)
	wait(c.readDone, settle)
	_ = c.in.Close()
	c.process.release()
}

// wait waits for an event and reports whether it came in time.
func wait(event <-chan struct{}, limit time.Duration) bool {
	select {
	case <-event:
		return true
	default:
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-event:
		return true
	case <-t.C:
		return false
	}
}
