package blockwire

import (
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// Format describes a dialect whose messages are lists of content blocks, one block for
// each part. The types of this package that hold a Format decode and encode such a
// dialect; the dialect itself reads and writes single blocks and events. A Format does
// not change after its package is initialized.
type Format struct {
	Dialect dragoman.Dialect
	// API names the dialect in errors.
	API string
	// Limits returns the limits of the dialect.
	Limits func() targets.Limits
	// Tools holds the codec of the dialect's tool objects.
	Tools []toolwire.Codec
	// Messages describes where a request has its messages.
	Messages wirekit.Conversation
	// Literal lists the fields that are read without interpreting them.
	Literal jsonwire.Literal
	// DecodeError decodes an error, as the codec does.
	DecodeError func(status int, header http.Header, body []byte) *dragoman.APIError
	// EncodeError encodes an error, as the codec does.
	EncodeError func(e *dragoman.APIError) (int, []byte, dragoman.Report)

	// IDPrefix is the prefix of ids for calls that came without one. CallPlace is the
	// position of a response's first block, from which such ids are made.
	IDPrefix  string
	CallPlace []int
	// Content is the pointer of a response's blocks in reports.
	Content string
	// UnsendableFields returns the fields that frameworks leave on blocks and that no block of a
	// request may have (quirk D32).
	UnsendableFields func(p dragoman.Part) []string

	// StopField is the field with the stop reason, and StopAt its pointer in reports.
	StopField, StopAt string
	// StopWords are the stop reasons that the dialect has in addition to Claude's.
	StopWords map[string]dragoman.StopReason
	// StopWord returns the nearest value for a stop reason that not all Claude dialects
	// have. exact is false if the value has another meaning.
	StopWord func(reason dragoman.StopReason, calls bool) (word string, exact bool)

	// MaxTokens is the field that limits a response, and Thinker names what refuses a
	// thinking budget, both for reports. NotWhileThinking is the reason for dropping a
	// sampling parameter.
	MaxTokens, Thinker, NotWhileThinking string
	// ResponseSchema returns the rules for the schema of a structured response.
	// SchemaNames means that such a schema has a name and a description.
	ResponseSchema func() schema.Profile
	SchemaNames    bool

	// WriteText, WriteMedia and WriteReasoning write one block.
	WriteText      func(v toolwire.View, w *jsonwire.Writer, t *dragoman.Text, at extra.Path, rep *dragoman.Report)
	WriteMedia     func(v toolwire.View, w *jsonwire.Writer, m *dragoman.Media, at extra.Path, rep *dragoman.Report)
	WriteReasoning func(w *jsonwire.Writer, p *dragoman.Reasoning, signature string)
	// WriteCachePoint writes a cache breakpoint as a separate block. It is nil for a
	// dialect whose breakpoints are fields of the blocks.
	WriteCachePoint func(w *jsonwire.Writer, h *dragoman.CacheHint, at extra.Path, rep *dragoman.Report)
	// IsCachePoint reports whether a block is a cache point that a hint can express.
	// It is nil if WriteCachePoint is.
	IsCachePoint func(raw []byte) bool
	// ResponseMedia means that a response can contain media.
	ResponseMedia bool
}
