package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/serving/sniff"
)

// reader returns a buffered reader that skips a byte order mark, which some editors write
// at the start of a file.
func reader(in io.Reader) *bufio.Reader {
	r := bufio.NewReaderSize(in, sniff.HeadSize)
	if mark, _ := r.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = r.Discard(3)
	}
	return r
}

// readDocument reads one JSON document. The error for invalid JSON contains the position.
func readDocument(in io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, framing.DefaultMaxBody+1))
	switch {
	case err != nil:
		return nil, failed("%w", err)
	case len(data) > framing.DefaultMaxBody:
		return nil, failed("%w: more than %d bytes", dragoman.ErrTooLarge, framing.DefaultMaxBody)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, failed("the input is empty")
	}
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset := syntax.Offset - 1 // syntax.Offset includes the invalid byte
			if strings.Contains(err.Error(), "unexpected end") {
				offset = int64(len(bytes.TrimRight(data, " \t\r\n"))) // report the last line with content
			}
			return nil, failed("the input is not valid JSON: %w at %s", err, describeOffset(data, offset))
		}
		return nil, failed("the input is not valid JSON: %w", err)
	}
	return data, nil
}

// describeOffset describes the position of an offset: the byte counts from 0, the line from 1.
func describeOffset(data []byte, offset int64) string {
	offset = min(max(offset, 0), int64(len(data)))
	return fmt.Sprintf("byte %d, line %d", offset, 1+bytes.Count(data[:offset], []byte("\n")))
}

// withLine adds the line number to a decode error that has a byte offset.
func withLine(data []byte, err error) error {
	var at *dragoman.DecodeError
	if errors.As(err, &at) && at.Offset >= 0 && at.Offset <= int64(len(data)) {
		return fmt.Errorf("%w, line %d", err, 1+bytes.Count(data[:at.Offset], []byte("\n")))
	}
	return err
}

// flagHint returns the part of an error that names the missing flags, --from and --kind, and
// the values they accept.
func flagHint(kind sniff.Kind, from dragoman.Dialect) string {
	kinds := slices.DeleteFunc(slices.Clone(sniff.Kinds), func(k sniff.Kind) bool {
		return k == sniff.Stream && from == sniff.Canonical // the canonical form has no streams
	})
	asFrom, asKind := fmt.Sprintf("--from (%s)", list(sourceWords(kind), "or")), fmt.Sprintf("--kind (%s)", list(kinds, "or"))
	switch {
	case kind == "" && from == "":
		return asFrom + " and " + asKind + " specify it"
	case kind == "":
		return asKind + " specifies it"
	default:
		return asFrom + " specifies it"
	}
}

// sourceWords returns the values that --from accepts for a kind of input. The empty kind
// means any kind.
func sourceWords(kind sniff.Kind) []string {
	var words []string
	for _, l := range allDialects() {
		words = append(words, l.short[0])
	}
	if kind != sniff.Stream {
		words = append(words, string(sniff.Canonical))
	}
	if kind == "" || kind == sniff.Tools {
		words = append(words, string(sniff.MCP))
	}
	return words
}

// suggestInput returns the end of an error that says how the input would be read without the given
// flags. It is empty if that is unknown.
func suggestInput(data []byte, kind sniff.Kind, from dragoman.Dialect) string {
	g, err := sniff.Of(data, "", "")
	if err != nil {
		return ""
	}
	var flags []string
	if from != "" {
		flags = append(flags, "--from")
	}
	if kind != "" {
		flags = append(flags, "--kind")
	}
	return fmt.Sprintf("; without %s it is read as %s, %s, because %s", list(flags, "and"), g.Dialect, g.Kind, g.Because)
}
