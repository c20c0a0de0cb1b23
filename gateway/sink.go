package gateway

import (
	"net/http"
	"sync"
	"time"
)

// writeTime is how long a client may take to take what is written. One that takes
// nothing for so long is gone.
const writeTime = 5 * time.Minute

// sink is where an answer goes. Pauses of a stream are filled with heartbeats, so
// that nobody on the way takes it for dead (quirk J1).
type sink struct {
	w    http.ResponseWriter
	conn *http.ResponseController
	// header sets the headers of a stream that begins by itself, because nothing came
	// for a while.
	header func(http.Header)
	// ping is the heartbeat, and every how long it beats; 0: never.
	ping  []byte
	every time.Duration

	mu    sync.Mutex
	timer *time.Timer
	// begun says that the status is sent, at when the first byte and last when the
	// last one went out.
	begun, ended bool
	// beaten says that a heartbeat began the stream, before anything was known of it.
	beaten   bool
	at, last time.Time
	deadline time.Time
	bytes    int64
	failed   error
}

func newSink(w http.ResponseWriter) *sink {
	return &sink{w: w, conn: http.NewResponseController(w)}
}

// beat begins the heartbeat of a stream.
func (s *sink) beat(ping []byte, every time.Duration, header func(http.Header)) {
	if len(ping) == 0 || every <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ping, s.every, s.header = ping, every, header
	s.last = time.Now()
	s.timer = time.AfterFunc(every, s.tick)
}

// tick writes a heartbeat if nothing was written for as long as one takes.
func (s *sink) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.failed != nil {
		return
	}
	wait := s.every - time.Since(s.last)
	if wait <= 0 {
		if !s.begun {
			s.header(s.w.Header())
			s.status(http.StatusOK)
			s.beaten = true
		}
		s.put(s.ping)
		s.flush()
		wait = s.every
	}
	s.timer.Reset(wait)
}

// begin sends the status and the headers, unless a heartbeat did.
func (s *sink) begin(status int, header func(http.Header)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		header(s.w.Header())
		s.status(status)
	}
}

func (s *sink) status(status int) {
	s.begun = true
	s.w.WriteHeader(status)
}

// write writes a piece, whole events of a stream. It waits for a client that is
// slow, and so does everybody behind it.
func (s *sink) write(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(p)
	return s.failed
}

// send is write, and the piece is on its way when it returns.
func (s *sink) send(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.put(p); len(p) > 0 {
		s.flush()
	}
	return s.failed
}

func (s *sink) put(p []byte) {
	if s.failed != nil || len(p) == 0 {
		return
	}
	now := time.Now()
	if s.last = now; s.at.IsZero() {
		s.at = now
	}
	if s.deadline.Sub(now) < writeTime*3/4 {
		s.deadline = now.Add(writeTime)
		_ = s.conn.SetWriteDeadline(s.deadline) // a test's recorder has none
	}
	n, err := s.w.Write(p)
	s.bytes += int64(n)
	s.failed = err
}

func (s *sink) flush() {
	if s.failed == nil {
		s.failed = s.conn.Flush()
	}
}

// heading changes what sets the headers of a stream that begins by itself. It is called
// while others are at work: it must not read what they change.
func (s *sink) heading(header func(http.Header)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.header = header
}

// hush ends the heartbeat of a stream that is over (quirk J1), and reports whether it was
// the first to.
func (s *sink) hush() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.ended
	s.ended = true
	return first
}

// end ends the heartbeat, and reports whether the status is sent. When it returns no beat
// is on its way: the headers are the caller's, and so is what is written.
func (s *sink) end() (begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
	return s.begun
}
