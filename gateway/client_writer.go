package gateway

import (
	"net/http"
	"sync"
	"time"
)

// writeTime is the timeout of a write to the client. A client that does not read for so long
// counts as disconnected.
const writeTime = 5 * time.Minute

// clientWriter writes a response to the client. It fills pauses of a stream with heartbeats, so that
// proxies do not close it as idle (quirk J1).
type clientWriter struct {
	w    http.ResponseWriter
	conn *http.ResponseController
	// header sets the headers of a stream that begins with a heartbeat.
	header func(http.Header)
	// ping is the heartbeat, and every its interval; 0 means never.
	ping  []byte
	every time.Duration

	mu    sync.Mutex
	timer *time.Timer
	// started reports that the status was sent. firstByte and lastByte are the times of these
	// bytes.
	started, ended bool
	// beganWithHeartbeat reports that the stream began with a heartbeat, before the response was
	// known.
	beganWithHeartbeat  bool
	firstByte, lastByte time.Time
	deadline            time.Time
	bytes               int64
	err                 error
}

func newClientWriter(w http.ResponseWriter) *clientWriter {
	return &clientWriter{w: w, conn: http.NewResponseController(w)}
}

// startHeartbeat starts the heartbeat of a stream.
func (s *clientWriter) startHeartbeat(ping []byte, every time.Duration, header func(http.Header)) {
	if len(ping) == 0 || every <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ping, s.every, s.header = ping, every, header
	s.lastByte = time.Now()
	s.timer = time.AfterFunc(every, s.heartbeat)
}

// heartbeat writes a heartbeat if nothing was written for one interval.
func (s *clientWriter) heartbeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.err != nil {
		return
	}
	wait := s.every - time.Since(s.lastByte)
	if wait <= 0 {
		if !s.started {
			s.header(s.w.Header())
			s.writeStatus(http.StatusOK)
			s.beganWithHeartbeat = true
		}
		s.writeLocked(s.ping)
		s.flushLocked()
		wait = s.every
	}
	s.timer.Reset(wait)
}

// begin sends the status and the headers, unless a heartbeat already did.
func (s *clientWriter) begin(status int, header func(http.Header)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		header(s.w.Header())
		s.writeStatus(status)
	}
}

func (s *clientWriter) writeStatus(status int) {
	s.started = true
	s.w.WriteHeader(status)
}

// write writes a chunk: whole events of a stream. It blocks while the client is slow, which
// also slows down the upstream.
func (s *clientWriter) write(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLocked(p)
	return s.err
}

// send is write followed by a flush.
func (s *clientWriter) send(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeLocked(p); len(p) > 0 {
		s.flushLocked()
	}
	return s.err
}

func (s *clientWriter) writeLocked(p []byte) {
	if s.err != nil || len(p) == 0 {
		return
	}
	now := time.Now()
	if s.lastByte = now; s.firstByte.IsZero() {
		s.firstByte = now
	}
	if s.deadline.Sub(now) < writeTime*3/4 {
		s.deadline = now.Add(writeTime)
		_ = s.conn.SetWriteDeadline(s.deadline) // test recorders do not support deadlines
	}
	n, err := s.w.Write(p)
	s.bytes += int64(n)
	s.err = err
}

func (s *clientWriter) flushLocked() {
	if s.err == nil {
		s.err = s.conn.Flush()
	}
}

// setHeader replaces the function that sets the headers of a stream that begins with a heartbeat.
// The function is called concurrently and must not read what the handler changes.
func (s *clientWriter) setHeader(header func(http.Header)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.header = header
}

// stopHeartbeat stops the heartbeat of a stream that has ended (quirk J1), and reports whether it
// was still running.
func (s *clientWriter) stopHeartbeat() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.ended
	s.ended = true
	return first
}

// end stops the heartbeat, and reports whether the status was sent. After it returns no
// heartbeat is being written: the caller owns the headers and the output.
func (s *clientWriter) end() (begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
	return s.started
}
