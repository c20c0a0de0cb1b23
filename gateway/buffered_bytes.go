package gateway

import (
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/internal/access"
)

// buffers counts the bytes of request bodies that the gateway holds, in total and by key.
// The zero value is empty. It is safe for concurrent use.
type buffers struct {
	mu    sync.Mutex
	total int64
	keys  map[string]int64
}

// hold adds bytes of a key's request, or returns an error if a limit is reached. In a
// gateway without keys, only the total is limited.
func (b *buffers) hold(key string, bytes, most, mostOfKey int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case key != "" && b.keys[key]+bytes > mostOfKey:
		return refusal(&access.RefusedError{Reason: access.TooManyBytes, Key: key, Limit: mostOfKey, RetryAfter: time.Second})
	case b.total+bytes > most:
		return &ownError{&dragoman.APIError{
			Class: dragoman.ErrorOverloaded, Message: "the gateway holds too many request bytes at the moment; try again soon", RetryAfter: time.Second,
		}}
	}
	if b.keys == nil {
		b.keys = map[string]int64{}
	}
	b.total += bytes
	b.keys[key] += bytes
	return nil
}

// free subtracts bytes that hold has added.
func (b *buffers) free(key string, bytes int64) {
	if bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total -= bytes
	if b.keys[key] -= bytes; b.keys[key] <= 0 {
		delete(b.keys, key)
	}
}

// hold counts more bytes of the request. They are freed when the exchange ends.
func (x *exchange) hold(n int) error {
	if err := x.buffers.hold(x.entry.key, int64(n), x.setup.buffered, x.setup.bufferedByKey); err != nil {
		return err
	}
	x.held += int64(n)
	return nil
}

// release subtracts bytes that hold added.
func (x *exchange) release(n int) {
	x.buffers.free(x.entry.key, int64(n))
	x.held -= int64(n)
}

// auxBuffer counts the bytes of an auxiliary request.
type auxBuffer struct {
	*Gateway
	setup *setup
	key   string
	held  int64
}

func (h *auxBuffer) hold(n int) error {
	err := h.buffers.hold(h.key, int64(n), h.setup.buffered, h.setup.bufferedByKey)
	if err == nil {
		h.held += int64(n)
	}
	return err
}

func (h *auxBuffer) release(n int) {
	h.buffers.free(h.key, int64(n))
	h.held -= int64(n)
}

// free subtracts all bytes that are still counted.
func (h *auxBuffer) free() { h.release(int(h.held)) }
