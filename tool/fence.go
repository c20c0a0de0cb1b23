package tool

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// boundaryBytes is the number of random bytes of a boundary, so that the author of the output
// cannot know it.
const boundaryBytes = 12

// fence puts the texts of a result between two lines that its content cannot forge: the
// boundary is drawn when the content is known, and does not occur in it. Parts without text do
// not change. The name of the tool is quoted as one word.
func fence(random io.Reader, tool string, parts []dragoman.Part) error {
	var texts []*string
	for _, p := range parts {
		if s := textOf(p); s != nil {
			texts = append(texts, s)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	boundary, err := drawBoundary(random, append(slices.Clip(texts), labels(parts)...))
	if err != nil {
		return err
	}
	for _, s := range texts {
		*s = textkit.Fence(*s, textkit.Token(tool), boundary)
	}
	return nil
}

// labels returns the names and titles of media, which are outside of the fence.
func labels(parts []dragoman.Part) (out []*string) {
	for _, p := range parts {
		if m, ok := p.(*dragoman.Media); ok {
			out = append(out, &m.Name, &m.Title)
		}
	}
	return out
}

// drawBoundary draws a boundary that none of the texts contains.
func drawBoundary(random io.Reader, texts []*string) (string, error) {
	var b [boundaryBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("generating the boundary of the output: %w", err)
	}
	drawn := hex.EncodeToString(b[:])
	boundary := drawn
	for n := 1; containsAny(boundary, texts); n++ { // only if the source is not random
		boundary = drawn + strconv.Itoa(n)
	}
	return boundary, nil
}

func containsAny(s string, texts []*string) bool {
	for _, t := range texts {
		if strings.Contains(*t, s) {
			return true
		}
	}
	return false
}

// plainData converts data that is to be fenced to text, because its content is unknown, and
// invalid JSON in any case, because no wire accepts it.
func plainData(parts []dragoman.Part, fenced bool) {
	for i, p := range parts {
		if d, ok := p.(*dragoman.Data); ok && (fenced || jsonwire.Check(d.JSON) != nil) {
			parts[i] = &dragoman.Text{Text: string(d.JSON)}
		}
	}
}

// maxLabelText is the maximum length in bytes of a name or title of media.
const maxLabelText = 200

// plainLabels reduces parts that are to be fenced to what a fence can hold: the title of a text
// document moves into its text, names, types and other titles are shortened, and native fields,
// which the model may read too, are dropped. No model reads those of MCP.
func plainLabels(parts []dragoman.Part) {
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Text:
			p.Extra, p.Signature = unread(p.Extra), ""
		case *dragoman.Media:
			p.Extra = unread(p.Extra)
			if p.Text != "" && p.Title != "" {
				p.Text, p.Title = p.Title+"\n\n"+p.Text, ""
			}
			p.Title, p.Name = label(p.Title), label(p.Name)
			p.Media, p.MIME, p.Detail = label(p.Media), label(p.MIME), label(p.Detail)
		}
	}
}

// unread returns native fields if no model API writes them.
func unread(e *dragoman.Extra) *dragoman.Extra {
	if e != nil && e.Dialect == extra.MCP {
		return e
	}
	return nil
}

// label returns a text as one short line.
func label(s string) string {
	return cutAt(strings.Join(strings.Fields(strings.ToValidUTF8(cutAt(s, 4*maxLabelText), "\uFFFD")), " "), maxLabelText)
}
