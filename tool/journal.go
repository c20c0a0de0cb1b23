package tool

import (
	"context"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// Intent is what a journal is told before a tool runs.
type Intent struct {
	CallRef
	// Arguments is the hash of the final input.
	Arguments Hash
	// Idempotent says that the tool may run again where it is unknown whether it
	// did.
	Idempotent bool
	// Continues is the attempt that this one goes on from, as it was suspended; zero:
	// none. Where the journal knows of one behind it, nobody knows how far that came.
	Continues int
}

// Prior is what a journal knows of a call before it runs.
type Prior struct {
	// Attempts counts those that were begun before.
	Attempts int
	// Result is what an earlier attempt came to; nil: none has ended.
	Result *dragoman.ToolResult
	// Arguments is the hash of the input that was begun.
	Arguments Hash
}

// storeTimeout is what the context of a journal, or of a store of outputs, allows.
const storeTimeout = 30 * time.Second

// Journal makes effects happen once. Begin must be durable before it returns: the
// tool runs after it. Both must heed their context, which ends after 30 s: nobody
// else watches them.
type Journal interface {
	// Begin writes that a call is about to run and returns what was known of it
	// before.
	Begin(ctx context.Context, in Intent) (Prior, error)
	// End writes what the call came to.
	End(ctx context.Context, in Intent, result *dragoman.ToolResult) error
}
