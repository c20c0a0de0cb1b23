package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/sniff"
)

// reader returns a reader of what came, without a mark of its byte order, which
// some editors put before a text.
func reader(in io.Reader) *bufio.Reader {
	r := bufio.NewReaderSize(in, sniff.HeadSize)
	if mark, _ := r.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = r.Discard(3)
	}
	return r
}

// readDocument reads one JSON document, and says where it is none.
func readDocument(in io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, dialect.DefaultMaxBytes+1))
	switch {
	case err != nil:
		return nil, failed("%w", err)
	case len(data) > dialect.DefaultMaxBytes:
		return nil, failed("%w: more than %d bytes", dragoman.ErrTooLarge, dialect.DefaultMaxBytes)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, failed("the input is empty")
	}
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset := syntax.Offset - 1 // it counts the byte that is wrong
			if strings.Contains(err.Error(), "unexpected end") {
				offset = int64(len(data))
			}
			return nil, failed("the input is no JSON: %w at %s", err, place(data, offset))
		}
		return nil, failed("the input is no JSON: %w", err)
	}
	return data, nil
}

// place says where the byte at an offset stands, both counted as editors and
// errors do: lines from one, bytes from zero.
func place(data []byte, offset int64) string {
	offset = min(max(offset, 0), int64(len(data)))
	return fmt.Sprintf("line %d, byte %d", 1+bytes.Count(data[:offset], []byte("\n")), offset)
}

// placed adds the line to an error that knows its byte.
func placed(data []byte, err error) error {
	var at *dragoman.DecodeError
	if errors.As(err, &at) && at.Offset >= 0 && at.Offset <= int64(len(data)) {
		return fmt.Errorf("%w, line %d", err, 1+bytes.Count(data[:at.Offset], []byte("\n")))
	}
	return err
}

// settles names the flags that say what the input is, as far as they were not
// given.
func settles(kind sniff.Kind, from dragoman.Dialect) string {
	switch {
	case kind == "" && from == "":
		return "--from and --kind say it"
	case kind == "":
		return "--kind says it"
	default:
		return "--from says it"
	}
}
