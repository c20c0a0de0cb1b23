package provider

import (
	"bytes"
	"time"

	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
)

// Servers send heartbeats while a model is silent: comments and ping events in a stream,
// chunks without content, white space before a JSON body. Timeouts ignore them: a server
// whose model hangs may send them forever.

// maxHeartbeatLine bounds the part of a line that is inspected. Heartbeats are shorter, so a
// longer line has content.
const maxHeartbeatLine = 4 << 10

// contentDetector looks for content in the bytes of a response as they arrive.
type contentDetector struct {
	// hasContent reports whether the data of an event has content; nil means that all data
	// has.
	hasContent func(data []byte) bool
	mode       detectorMode
	// line is the beginning of a line that has not ended yet. If lineUnknown is set, its content
	// was not recorded, and skipped counts its bytes.
	line        []byte
	lineUnknown bool
	skipped     int
}

type detectorMode int

const (
	// detectStart: only white space has arrived of a response that is not a stream.
	detectStart detectorMode = iota
	// detectText: everything but white space is content.
	detectText
	// detectLines: content is in the lines of a stream of events or of JSON values.
	detectLines
	// detectAll: every byte is content.
	detectAll
)

// newContentDetector returns the pulse for the response to a request.
func newContentDetector(x *exchange) contentDetector {
	p := contentDetector{hasContent: x.wire.Stream.HasContent}
	_, lines := x.wire.Stream.Framing.(framing.Lines)
	switch {
	case !lines: // binary frames have no heartbeats
		p.mode = detectAll
	case x.stream:
		p.mode = detectLines
	}
	return p
}

// detect reports whether bytes that have arrived contain content, or complete a line with content.
func (p *contentDetector) detect(b []byte) bool {
	if p.mode == detectStart {
		b = bytes.TrimLeft(b, " \t\r\n")
		switch {
		case len(b) == 0:
			return false
		case b[0] == ':': // a comment: the server streams although no stream was requested
			p.mode = detectLines
		default:
			p.mode = detectText
		}
	}
	switch p.mode {
	case detectText:
		return len(bytes.TrimLeft(b, " \t\r\n")) > 0
	case detectLines:
		return p.lines(b)
	default:
		return true
	}
}

// skip counts bytes that are not inspected.
func (p *contentDetector) skip(b []byte) {
	if p.mode != detectLines || len(b) == 0 {
		return
	}
	end := b[len(b)-1]
	p.line, p.lineUnknown, p.skipped = p.line[:0], end != '\n' && end != '\r', 0
}

// lines reports whether one of the lines that end in b has content, or one that has not
// ended is too long for a heartbeat.
func (p *contentDetector) lines(b []byte) (content bool) {
	for len(b) > 0 {
		end := bytes.IndexAny(b, "\r\n")
		if end < 0 {
			return p.appendLine(b) || content
		}
		if !content && !p.lineUnknown {
			line := b[:end]
			if len(p.line) > 0 {
				p.line = append(p.line, line...)
				line = p.line
			}
			content = p.lineHasContent(line)
		}
		p.line, p.lineUnknown, p.skipped = p.line[:0], false, 0
		b = b[end+1:]
	}
	return content
}

// appendLine appends to the current line, and reports whether it is too long for a heartbeat.
func (p *contentDetector) appendLine(b []byte) bool {
	if p.lineUnknown {
		p.skipped += len(b)
		return p.skipped > maxHeartbeatLine
	}
	if len(p.line)+len(b) <= maxHeartbeatLine {
		p.line = append(p.line, b...)
		return false
	}
	comment := len(p.line) > 0 && p.line[0] == ':' || len(p.line) == 0 && b[0] == ':'
	p.line = p.line[:0]
	if comment { // regardless of its length
		p.line = append(p.line, ':')
		return false
	}
	p.lineUnknown, p.skipped = true, maxHeartbeatLine
	return true
}

// lineHasContent reports whether a line has content. Comments, blank lines and the names of
// events do not. A line that is not part of an event stream counts as content.
func (p *contentDetector) lineHasContent(line []byte) bool {
	data, ok := sse.LineData(line)
	return ok && p.dataHasContent(data)
}

func (p *contentDetector) dataHasContent(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && (p.hasContent == nil || data[0] != '{' || p.hasContent(data))
}

// noteArrival inspects bytes of the response and the wait for them, and ends the attempt if no
// content has arrived for too long.
//
// A healthy stream has content in nearly every event. To avoid inspecting each, events within a
// 64th of the limit after one with content are assumed to have content.
func (a *attemptResponse) noteArrival(b []byte, waited time.Duration) {
	if len(b) == 0 {
		return
	}
	a.sinceContent += waited
	if limit := a.watch.currentLimit(); a.hasContent && (limit <= 0 || a.sinceContent < limit/64) {
		a.detector.skip(b)
		a.watch.progress()
		return
	}
	if !a.detector.detect(b) {
		a.watch.bytesWithoutContent()
		a.watch.checkQuiet()
		return
	}
	a.sinceContent = 0
	a.watch.progress()
	if !a.hasContent {
		a.hasContent = true
		a.watch.enter(phaseIdle)
		a.watch.endWait()
	}
}
