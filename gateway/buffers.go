package gateway

import (
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/access"
)

// buffers counts the bytes of request bodies that the gateway holds, in total and by key.
// The zero value is empty. It is safe for concurrent use.
type buffers struct {
	mu    sync.Mutex
	total int64
	keys  map[string]int64
}

// hold adds bytes of a key's request, or says why there is no room for them. Requests
// without a key, where there are none, are bound by the total alone.
func (b *buffers) hold(key string, bytes, most, mostOfKey int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case key != "" && b.keys[key]+bytes > mostOfKey:
		return refusal(&access.RefusedError{Reason: access.TooManyBytes, Key: key, Limit: mostOfKey, RetryAfter: time.Second})
	case b.total+bytes > most:
		return &ownError{&dragoman.APIError{
			Class: dragoman.ErrorOverloaded, Message: "the gateway holds as many bytes of requests as it may; try again soon", RetryAfter: time.Second,
		}}
	}
	if b.keys == nil {
		b.keys = map[string]int64{}
	}
	b.total += bytes
	b.keys[key] += bytes
	return nil
}

// free takes bytes away that hold has added.
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

// hold makes room for more bytes of the request. What is held is freed when the exchange
// ends.
func (x *exchange) hold(n int) error {
	if err := x.buffers.hold(x.entry.key, int64(n), x.setup.buffered, x.setup.bufferedByKey); err != nil {
		return err
	}
	x.held += int64(n)
	return nil
}
