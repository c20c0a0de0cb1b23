package gateway_test

import (
	"io"
	"sync"
)

// syncBuffer is a writer that many may write to.
type syncBuffer struct {
	mu sync.Mutex
	w  io.Writer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.w.Write(p)
}
