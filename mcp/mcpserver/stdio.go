package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ServeStdio serves one client over standard input and output, until the input ends or ctx does.
// Nothing else may write to standard output: tools that print would break the protocol.
func (s *Server) ServeStdio(ctx context.Context) error {
	return s.Serve(ctx, os.Stdin, os.Stdout, Principal{})
}

// Serve serves one client over a pair of streams with a message on each line, until the input ends
// or ctx does. The principal is the user of the client.
func (s *Server) Serve(ctx context.Context, r io.Reader, w io.Writer, p Principal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &lines{s: s, in: bufio.NewReaderSize(r, 64<<10), out: w, principal: p, closed: make(chan struct{}), read: make(chan []byte)}
	ss, err := s.sdk.Connect(ctx, t, nil)
	if err != nil {
		return fmt.Errorf("mcpserver: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = ss.Close() })
	defer stop()
	err = ss.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("mcpserver: %w", err)
	}
	return nil
}

// maxLine limits the length of a message.
const maxLine = 16 << 20

// lines is a connection with a message on each line.
type lines struct {
	s         *Server
	in        *bufio.Reader
	principal Principal

	once   sync.Once
	start  sync.Once
	closed chan struct{}
	read   chan []byte
	err    error // why reading ended, set before read is closed

	mu  sync.Mutex
	out io.Writer
}

// Connect implements [mcp.Transport].
func (l *lines) Connect(context.Context) (mcp.Connection, error) { return l, nil }

// SessionID implements [mcp.Connection].
func (l *lines) SessionID() string { return "" }

// Close implements [mcp.Connection].
func (l *lines) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// scan reads lines until the input ends. A blocked read of standard input cannot be
// interrupted, so it has a goroutine of its own.
func (l *lines) scan() {
	defer close(l.read)
	for {
		line, err := l.line()
		if len(line) > 0 {
			select {
			case l.read <- line:
			case <-l.closed:
				return
			}
		}
		if err != nil {
			l.err = err
			return
		}
	}
}

var errLine = fmt.Errorf("a line is longer than %d bytes", maxLine)

func (l *lines) line() ([]byte, error) {
	var out []byte
	for {
		part, err := l.in.ReadSlice('\n')
		if len(out)+len(part) > maxLine {
			return nil, errLine
		}
		out = append(out, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(out), err
		}
	}
}

// Read implements [mcp.Connection]. It answers what is no message itself.
func (l *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	l.start.Do(func() { go l.scan() })
	for {
		var line []byte
		var ok bool
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.closed:
			return nil, io.EOF
		case line, ok = <-l.read:
		}
		if !ok {
			return nil, l.err
		}
		msg, err := l.message(line)
		if err == nil {
			return msg, nil
		}
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) {
			wire = rpcError(jsonrpc.CodeInvalidRequest, err.Error())
		}
		if err := l.writeLine(encode(map[string]any{"jsonrpc": "2.0", "id": nil, "error": wire})); err != nil {
			return nil, err
		}
	}
}

func (l *lines) message(line []byte) (jsonrpc.Message, error) {
	switch {
	case !json.Valid(line):
		return nil, rpcError(jsonrpc.CodeParseError, "the line is not JSON")
	case line[0] == '[':
		return nil, errors.New("batches are not supported over stdio: send one message on each line")
	case !jsonwire.Unambiguous(line):
		return nil, errors.New("the message repeats the name of a field")
	}
	m, err := parse(line)
	if err != nil {
		return nil, err
	}
	if m.method == "initialize" {
		line = knownRevision(line)
	}
	in := &inbound{principal: l.principal}
	line, in.responses = withoutResponses(line, m)
	msg, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, err
	}
	if r, ok := msg.(*jsonrpc.Request); ok {
		r.Extra = &mcp.RequestExtra{TokenInfo: in.token()}
	}
	return msg, nil
}

// Write implements [mcp.Connection].
func (l *lines) Write(ctx context.Context, msg jsonrpc.Message) error {
	if r, ok := msg.(*jsonrpc.Response); ok && r.Error != nil {
		r.Error = asWire(ctx, r.Error)
	}
	b, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	return l.writeLine(b)
}

func (l *lines) writeLine(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
		return io.ErrClosedPipe
	default:
	}
	_, err := l.out.Write(append(bytes.TrimSuffix(b, []byte("\n")), '\n'))
	return err
}
