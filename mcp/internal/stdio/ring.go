package stdio

import "sync"

// maxStderr limits the kept bytes of standard error.
const maxStderr = 64 << 10

// ring keeps the end of what is written to it. The zero value is ready to use.
type ring struct {
	mu   sync.Mutex
	buf  []byte
	next int // where to write, if buf is full
}

func (r *ring) Write(p []byte) (int, error) {
	n := len(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(p) > maxStderr {
		p = p[len(p)-maxStderr:]
	}
	if room := maxStderr - len(r.buf); room > 0 {
		part := p[:min(room, len(p))]
		r.buf = append(r.buf, part...)
		p = p[len(part):]
	}
	for len(p) > 0 {
		copied := copy(r.buf[r.next:], p)
		r.next = (r.next + copied) % maxStderr
		p = p[copied:]
	}
	return n, nil
}

func (r *ring) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.buf[r.next:]) + string(r.buf[:r.next])
}
