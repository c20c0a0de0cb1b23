package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

type readInput struct {
	Path      string `json:"path" doc:"the file, relative to the workspace"`
	StartLine int    `json:"start_line,omitempty" doc:"the first line to read, counted from 1" jsonschema:"minimum=1"`
	EndLine   int    `json:"end_line,omitempty" doc:"the last line to read; as far as fits if left out" jsonschema:"minimum=1"`
	Numbers   bool   `json:"line_numbers,omitempty" doc:"put its number before each line"`
	Offset    *int64 `json:"offset,omitempty" doc:"read bytes from here instead of lines; for files with very long lines" jsonschema:"minimum=0"`
	Bytes     int    `json:"bytes,omitempty" doc:"how many bytes to read with offset, at most 40000" jsonschema:"minimum=1,maximum=40000"`
}

// maxShown limits the bytes of a file that are shown at once, and maxLines the lines.
const (
	maxShown = 40_000
	maxLines = 2000
)

// Read returns the tool that reads files.
func (w *Workspace) Read(opts ...tool.Option) tool.Tool {
	return tool.New(toolname.ReadFile, "Reads a text file of the workspace: all of it, a range of lines, or a range of bytes. "+
		"The first line of the result says which part it is, how to continue, and the version of the file, for write_file.",
		w.read, reads(opts)...)
}

func (w *Workspace) read(_ context.Context, in readInput) (string, error) {
	rel, err := w.resolve(in.Path)
	if err != nil {
		return "", err
	}
	switch {
	case in.Offset != nil && (in.StartLine > 0 || in.EndLine > 0):
		return "", errors.New("give start_line and end_line, or offset and bytes, not both")
	case in.EndLine > 0 && in.EndLine < in.StartLine:
		return "", fmt.Errorf("end_line %d is before start_line %d", in.EndLine, in.StartLine)
	case in.Offset != nil:
		return w.readBytes(rel, *in.Offset, in.Bytes)
	}
	data, _, err := w.load(rel)
	if errors.Is(err, errTooLarge) {
		return "", fmt.Errorf("%w; read parts of it with offset and bytes", err)
	}
	if err != nil {
		return "", err
	}
	if isBinary(data) {
		return describeBinary(rel, data, int64(len(data))), nil
	}
	return readLines(rel, data, in), nil
}

// describeBinary describes a binary file instead of showing it.
func describeBinary(rel string, data []byte, size int64) string {
	return fmt.Sprintf("[%s is a binary file of %s, which is not shown; it begins with % x]", shown(rel), textkit.Count(size, "byte"), data[:min(len(data), 16)])
}

func readLines(rel string, data []byte, in readInput) string {
	first := max(in.StartLine, 1)
	last := first + maxLines - 1
	if in.EndLine > 0 {
		last = min(last, in.EndLine)
	}
	var out strings.Builder
	number, end, cut := 0, 0, false
	for line := range bytes.Lines(data) {
		number++
		if number < first || number > last || cut {
			continue
		}
		prefix := ""
		if in.Numbers {
			prefix = strconv.Itoa(number) + "\t"
		}
		if room := maxShown - out.Len() - len(prefix); len(line) > room {
			cut = true
			if end > 0 {
				continue
			}
			line = []byte(cutText(string(line), max(room, 0))) // a single line that is too long
		}
		out.WriteString(prefix)
		out.Write(line)
		end = number
	}
	return plain(linesHead(rel, data, first, end, number, cut) + out.String())
}

// linesHead returns the line that describes which lines are shown and how to read the others.
func linesHead(rel string, data []byte, first, end, total int, cut bool) string {
	head := fmt.Sprintf("[%s: ", shown(rel))
	switch {
	case total == 0:
		head += "empty"
	case end == 0:
		head += fmt.Sprintf("start_line %d is after the end: the file has %s", first, textkit.Count(total, "line"))
	default:
		head += fmt.Sprintf("lines %d to %d of %d", first, end, total)
	}
	switch {
	case cut && first == end:
		head += "; the line is too long to show, read it with offset and bytes"
	case end > 0 && end < total:
		head += fmt.Sprintf("; continue with start_line %d", end+1)
	}
	if !utf8.Valid(data) {
		head += "; bytes that are not UTF-8 are shown as \uFFFD"
	}
	return head + "; version " + versionOf(data) + "]\n"
}

// readBytes shows a range of bytes, cut at whole characters if it is text.
func (w *Workspace) readBytes(rel string, offset int64, n int) (string, error) {
	if n <= 0 || n > maxShown {
		n = maxShown
	}
	f, info, err := w.open(rel)
	if err != nil {
		return "", err
	}
	defer closeQuietly(f)
	if offset > info.Size() {
		return "", fmt.Errorf("offset %d is after the end: %s has %s", offset, quoteShort(rel), textkit.Count(info.Size(), "byte"))
	}
	data, err := readAt(f, offset, n)
	if err != nil {
		return "", explain(rel, err)
	}
	if isBinary(data) {
		return describeBinary(rel, data, info.Size()), nil
	}
	text := wholeRunes(data)
	if len(text) == 0 {
		text = data // at least one byte, so that reading makes progress
	}
	end := offset + int64(len(text))
	head := fmt.Sprintf("[%s: bytes %d to %d of %d", shown(rel), offset, end, info.Size())
	if end < info.Size() {
		head += fmt.Sprintf("; continue with offset %d", end)
	}
	return plain(head + "]\n" + string(text)), nil
}

func readAt(f *os.File, offset int64, n int) ([]byte, error) {
	data := make([]byte, n)
	n, err := f.ReadAt(data, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], err
}

// wholeRunes removes an incomplete character at the end.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
