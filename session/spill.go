package session

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

// outputChunk is the size of one stored chunk of an output. A page reads one or two
// chunks, however long the output is.
const outputChunk = 256 << 10

// Spill returns the store for tool outputs that are too long for the model. They are in the
// session's log: as durable as the conversation, copied and exported with it, and deleted
// with it. Every run of the session can read them, because the conversation contains their
// names.
//
// A run that is stored in the session (agent.In) uses it unless its Runner has a Spill
// of its own.
func (s *Session) Spill() tool.SpillStore { return spill{s} }

type spill struct{ s *Session }

// output is the body of an entry of kind "output" that names an output. The chunks are in
// separate entries, found by the hash of the content.
type output struct {
	V      int    `json:"v"`
	Run    string `json:"run"`
	Turn   int    `json:"turn"`
	CallID string `json:"call_id"`
	Size   int    `json:"size"`
	Hash   string `json:"hash"`
	// Starts are the offsets of the chunks.
	Starts []int `json:"starts"`
}

func outputKey(name string) string { return "output:" + name }

func (o *output) chunkKey(i int) string { return "output:" + o.Hash + ":" + strconv.Itoa(i) }

// Put stores an output. Bytes that are not valid UTF-8 become U+FFFD.
func (p spill) Put(ctx context.Context, of tool.CallRef, part int, content string) (string, error) {
	content = strings.ToValidUTF8(content, "\uFFFD")
	if len(content) > storage.MaxOutput {
		return "", fmt.Errorf("session: an output of %d bytes is longer than the maximum of %d bytes: %w", len(content), storage.MaxOutput, dragoman.ErrTooLarge)
	}
	name := toolname.Spilled(of.Run, of.Turn, of.CallID, part)
	sum := sha256.Sum256([]byte(content))
	o := output{V: bodyVersion, Run: of.Run, Turn: of.Turn, CallID: of.CallID, Size: len(content), Hash: base64.RawURLEncoding.EncodeToString(sum[:])}
	if before, err := p.find(ctx, name); err == nil && before.Hash == o.Hash {
		return name, nil // another attempt at the same call
	}
	var entries []Entry
	for at := 0; at < len(content); {
		end := min(at+outputChunk, len(content))
		for end < len(content) && !utf8.RuneStart(content[end]) {
			end--
		}
		var w jsonwire.Writer
		w.String(content[at:end])
		if err := w.Err(); err != nil {
			return "", fmt.Errorf("session: the output of call %s: %w", of.CallID, err)
		}
		entries = append(entries, Entry{Kind: kindOutput, Key: o.chunkKey(len(o.Starts)), Body: w.Buf})
		o.Starts = append(o.Starts, at)
		at = end
	}
	body, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	entries = append(entries, Entry{Kind: kindOutput, Key: outputKey(name), Body: body})
	if err := p.s.write(ctx, entries); err != nil {
		return "", wrapErr("storing an output in", p.s.ID(), err)
	}
	return name, nil
}

// find returns the entry that names an output.
func (p spill) find(ctx context.Context, name string) (o output, err error) {
	err = tool.ErrNoSpill
	for e, failed := range p.s.Entries(ctx, Query{Key: outputKey(name), Kinds: []string{kindOutput}, Last: 1}) {
		if failed != nil {
			return o, failed
		}
		err = unmarshal(&e, &o, &o.V)
	}
	return o, err
}

// Read returns a page of an output.
func (p spill) Read(ctx context.Context, _, name string, offset, n int) (string, int, error) {
	o, err := p.find(ctx, name)
	if errors.Is(err, tool.ErrNoSpill) {
		return "", 0, fmt.Errorf("%w: session %s has no output %q", tool.ErrNoSpill, p.s.ID(), name)
	}
	if err != nil {
		return "", 0, wrapErr("reading an output of", p.s.ID(), err)
	}
	if offset < 0 || offset > o.Size {
		return "", o.Size, fmt.Errorf("session: output %q has %s; offset %d is outside of it", name, textkit.Count(o.Size, "byte"), offset)
	}
	if offset == o.Size {
		return "", o.Size, nil
	}
	n = max(n, utf8.UTFMax)
	var page []byte
	first := sort.SearchInts(o.Starts, offset+1) - 1 // the chunk that holds offset
	for i := max(first, 0); i < len(o.Starts) && len(page) < n; i++ {
		text, err := p.chunk(ctx, &o, i)
		if err != nil {
			return "", o.Size, wrapErr("reading an output of", p.s.ID(), err)
		}
		if i == first {
			from := min(offset-o.Starts[i], len(text))
			for from > 0 && from < len(text) && !utf8.RuneStart(text[from]) {
				from--
			}
			text = text[from:]
		}
		page = append(page, text...)
	}
	if n < len(page) {
		for n > 0 && !utf8.RuneStart(page[n]) {
			n--
		}
		page = page[:n]
	}
	return string(page), o.Size, nil
}

func (p spill) chunk(ctx context.Context, o *output, i int) (text string, err error) {
	err = fmt.Errorf("%w: chunk %d of output %s is missing", ErrCorrupt, i, o.Hash)
	for e, failed := range p.s.Entries(ctx, Query{Key: o.chunkKey(i), Kinds: []string{kindOutput}, Last: 1}) {
		if failed != nil {
			return "", failed
		}
		if err = json.Unmarshal(e.Body, &text); err != nil {
			err = unreadable(&e, err)
		}
	}
	return text, err
}
