package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/storage"
)

// An exported session is text with one JSON object per line: first a header, then one line
// for each entry.
const (
	jsonlVersion = 1
	// maxLine bounds a line: the largest body with all other fields at their longest.
	maxLine = maxBody + 64<<10
)

// Export writes a session as lines of JSON (JSONL): a header, then one line for each entry.
// [Import] reads it. Export omits entries that are written meanwhile, and the tickets of
// background work, which [Copy] copies.
func Export(ctx context.Context, from Store, id string, to io.Writer) error {
	info, err := from.Info(ctx, id)
	if err != nil {
		return wrapErr("exporting", id, err)
	}
	w := bufio.NewWriterSize(to, 64<<10)
	var line jsonwire.Writer
	writeHeader(&line, info)
	for e, err := range upTo(ctx, from, id, info.Head) {
		if err == nil {
			_, err = w.Write(append(line.Buf, '\n'))
		}
		if err != nil {
			return wrapErr("exporting", id, err)
		}
		line = jsonwire.Writer{Buf: line.Buf[:0]}
		writeEntry(&line, &e)
	}
	_, err = w.Write(append(line.Buf, '\n'))
	return wrapIf("exporting", id, errors.Join(err, w.Flush()))
}

func writeHeader(w *jsonwire.Writer, i Info) {
	w.BeginObject()
	w.IntField("dragoman_session", jsonlVersion)
	w.StringField("id", i.ID)
	w.StringFieldIf("title", i.Title)
	w.StringField("created", timeText(i.Created))
	if i.Parent != "" {
		w.StringField("parent", i.Parent)
		w.IntField("at", i.ParentSeq)
	}
	w.IntField("entries", i.Head)
	w.EndObject()
}

func writeEntry(w *jsonwire.Writer, e *Entry) {
	w.BeginObject()
	w.IntField("seq", e.Seq)
	w.StringField("time", timeText(e.Time))
	w.StringField("kind", e.Kind)
	w.StringFieldIf("key", e.Key)
	w.Key("body")
	w.Known(oneLine(e.Body))
	w.EndObject()
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// oneLine returns a body without line breaks, which JSON has only as white space.
func oneLine(body []byte) []byte {
	if !bytes.ContainsAny(body, "\n\r") {
		return body
	}
	var b bytes.Buffer
	if json.Compact(&b, body) != nil {
		return body
	}
	return b.Bytes()
}

// Import creates a session from the output of [Export], all or nothing, and returns its
// Info. The session keeps its id, unless as is not empty. Every line is checked: an error
// wraps [ErrInvalid] and names the line.
func Import(ctx context.Context, to Store, from io.Reader, as string) (Info, error) {
	r := &lines{r: bufio.NewReaderSize(from, 64<<10)}
	info, n, err := r.header()
	if err != nil {
		return Info{}, err
	}
	if as != "" {
		info.ID = as
	}
	if err := info.Check(); err != nil {
		return Info{}, r.wrapErr(err)
	}
	if err := to.Create(ctx, info, r.entries(ctx, n)); err != nil {
		return Info{}, wrapErr("importing", info.ID, err)
	}
	info, err = to.Info(ctx, info.ID)
	return info, wrapIf("importing", info.ID, err)
}

// lines reads the lines of an exported session.
type lines struct {
	r   *bufio.Reader
	buf []byte
	n   int // the number of the last line that was read, from 1
}

// wrapErr adds the line number to an error.
func (l *lines) wrapErr(err error) error {
	return fmt.Errorf("%w: line %d of the export: %w", ErrInvalid, l.n, err)
}

// next returns the next line, or io.EOF. The line is valid until the following call. Blank
// lines are counted and skipped.
func (l *lines) next() ([]byte, error) {
	for {
		l.n++
		l.buf = l.buf[:0]
		for {
			piece, err := l.r.ReadSlice('\n')
			l.buf = append(l.buf, piece...)
			if len(l.buf) > maxLine {
				return nil, l.wrapErr(fmt.Errorf("it has more than %d bytes", maxLine))
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && !(errors.Is(err, io.EOF) && len(l.buf) > 0) {
				return nil, err
			}
			break
		}
		if line := bytes.TrimSpace(l.buf); len(line) > 0 {
			return line, nil
		}
	}
}

// decode reads a line that is one JSON object.
func (l *lines) decode(line []byte, v any) error {
	if err := jsonwire.Check(line); err != nil {
		return l.wrapErr(err)
	}
	if err := json.Unmarshal(line, v); err != nil {
		return l.wrapErr(err)
	}
	return nil
}

func (l *lines) header() (info Info, entries int64, err error) {
	line, err := l.next()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = l.wrapErr(errors.New("the input contains no exported session"))
		}
		return info, 0, err
	}
	var h struct {
		Version int       `json:"dragoman_session"`
		ID      string    `json:"id"`
		Title   string    `json:"title"`
		Created time.Time `json:"created"`
		Parent  string    `json:"parent"`
		At      int64     `json:"at"`
		Entries *int64    `json:"entries"`
	}
	err = l.decode(line, &h)
	switch {
	case h.Version > jsonlVersion:
		return info, 0, &storage.Newer{What: "the exported session", Found: h.Version, Known: jsonlVersion}
	case err != nil:
		return info, 0, err
	case h.Version < 1 || h.Entries == nil || *h.Entries < 0:
		return info, 0, l.wrapErr(errors.New(`not the header of an exported session, such as {"dragoman_session":1,"id":…,"entries":…}`))
	}
	return Info{ID: h.ID, Title: h.Title, Created: h.Created, Parent: h.Parent, ParentSeq: h.At}, *h.Entries, nil
}

// entries yields n entries, and fails if there are more or fewer.
func (l *lines) entries(ctx context.Context, n int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for seq := int64(1); ; seq++ {
			line, err := l.next()
			if errors.Is(err, io.EOF) {
				if seq <= n {
					yield(Entry{}, l.wrapErr(fmt.Errorf("the header announces %d entries, but there are only %d", n, seq-1)))
				}
				return
			}
			var e Entry
			if err == nil {
				err = ctx.Err()
			}
			if err == nil && seq > n {
				err = l.wrapErr(fmt.Errorf("the header announces %d entries, but there are more", n))
			}
			if err == nil {
				e, err = l.entry(line, seq)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (l *lines) entry(line []byte, seq int64) (Entry, error) {
	var v struct {
		Seq  int64           `json:"seq"`
		Time time.Time       `json:"time"`
		Kind string          `json:"kind"`
		Key  string          `json:"key"`
		Body json.RawMessage `json:"body"`
	}
	if err := l.decode(line, &v); err != nil {
		return Entry{}, err
	}
	if v.Seq != seq {
		return Entry{}, l.wrapErr(fmt.Errorf("it is entry %d, want entry %d", v.Seq, seq))
	}
	e := Entry{Seq: seq, Time: v.Time, Kind: v.Kind, Key: v.Key, Body: v.Body}
	if err := e.Check(); err != nil {
		return Entry{}, l.wrapErr(err)
	}
	if err := e.checkBody(); err != nil {
		return Entry{}, l.wrapErr(err)
	}
	return e, nil
}

// checkBody reports whether the body matches the kind. It checks only the kinds that are
// needed to open and load a session.
func (e *Entry) checkBody() (err error) {
	switch e.Kind {
	case kindMessage:
		_, err = readMessage(e)
	case kindRewind:
		if e.Key != rewindKey {
			return invalidf("a rewind must have the key %q, not %q", rewindKey, e.Key)
		}
		_, err = readRewind(e)
	case kindMeta:
		_, err = metaEntry(e.Body)
	}
	return err
}
