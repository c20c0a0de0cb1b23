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
	"github.com/dragoman-go/dragoman/internal/framing/bodies"
	"github.com/dragoman-go/dragoman/internal/serving/sniff"
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
	data, err := io.ReadAll(io.LimitReader(in, bodies.DefaultMax+1))
	switch {
	case err != nil:
		return nil, failed("%w", err)
	case len(data) > bodies.DefaultMax:
		return nil, failed("%w: more than %d bytes", dragoman.ErrTooLarge, bodies.DefaultMax)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, failed("the input is empty")
	}
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset := syntax.Offset - 1 // it counts the byte that is wrong
			if strings.Contains(err.Error(), "unexpected end") {
				offset = int64(len(bytes.TrimRight(data, " \t\r\n"))) // the end of the last line begins no other
			}
			return nil, failed("the input is not valid JSON: %w at %s", err, place(data, offset))
		}
		return nil, failed("the input is not valid JSON: %w", err)
	}
	return data, nil
}

// place says where the byte at an offset stands, both counted as editors and
// errors do: lines from one, bytes from zero and from the beginning of the input.
func place(data []byte, offset int64) string {
	offset = min(max(offset, 0), int64(len(data)))
	return fmt.Sprintf("byte %d, line %d", offset, 1+bytes.Count(data[:offset], []byte("\n")))
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
// given, with the words they take.
func settles(kind sniff.Kind, from dragoman.Dialect) string {
	kinds := slices.DeleteFunc(slices.Clone(sniff.Kinds), func(k sniff.Kind) bool {
		return k == sniff.Stream && from == sniff.Canonical // which has none
	})
	asFrom, asKind := fmt.Sprintf("--from (%s)", list(sourceWords(kind), "or")), fmt.Sprintf("--kind (%s)", list(kinds, "or"))
	switch {
	case kind == "" && from == "":
		return asFrom + " and " + asKind + " say it"
	case kind == "":
		return asKind + " says it"
	default:
		return asFrom + " says it"
	}
}

// sourceWords are the words that --from takes for a kind of input; an empty one
// is any.
func sourceWords(kind sniff.Kind) []string {
	var words []string
	for _, l := range languages() {
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

// looksLike is what the input would be taken for without the flags that were
// given, as the end of an error; empty where nobody knows.
func looksLike(data []byte, kind sniff.Kind, from dragoman.Dialect) string {
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
