package openairesponses

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Annotations and logprobs come in events of their own or beside the deltas, and
// once more in the end of the message, from where they are read. What its end
// does not repeat is in the chunks alone, and lost where those are not passed on.

// beside takes note that an event tells something beside the text of its message.
// One whose message is unknown, or ended, tells it of none.
func (d *streamDecoder) beside(note func(*streamItem)) {
	it := d.find()
	if it == nil || it.kind != messageItem || it.final != nil {
		d.loss = besideLoss(true, true)
		return
	}
	note(it)
}

// loseBeside says what is lost of a message that ended with raw, or without an
// end of its own.
func (d *streamDecoder) loseBeside(it *streamItem, raw []byte) {
	if !it.logprobs && it.annotations == 0 {
		return
	}
	annotations, logprobs := 0, false
	if raw != nil {
		annotations, logprobs = besideIn(raw)
	}
	if l := besideLoss(it.annotations > annotations, it.logprobs && !logprobs); l != nil {
		d.loss = l
	}
	it.annotations, it.logprobs = 0, false
}

// besideLoss is the line for annotations, logprobs, or both.
func besideLoss(annotations, logprobs bool) *dragoman.Loss {
	what := ""
	switch {
	case annotations && logprobs:
		what = "annotations or logprobs"
	case annotations:
		what = "annotations"
	case logprobs:
		what = "logprobs"
	default:
		return nil
	}
	return &dragoman.Loss{
		Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: "/output",
		Detail: what + " of a stream, which the end of their message does not repeat, are not collected",
	}
}

// besideIn counts the annotations of a message, and reports whether it has
// logprobs.
func besideIn(raw []byte) (annotations int, logprobs bool) {
	r := jsonwire.NewReader(raw)
	for key := range r.Object() {
		if string(key) != "content" || r.Kind() != '[' {
			r.Skip()
			continue
		}
		for range r.Array() {
			if r.Kind() != '{' {
				r.Skip()
				continue
			}
			for key := range r.Object() {
				list := string(key) == "annotations" || string(key) == "logprobs"
				if !list || r.Kind() != '[' {
					r.Skip()
					continue
				}
				isLog := key[0] == 'l'
				for range r.Array() {
					r.Skip()
					if isLog {
						logprobs = true
					} else {
						annotations++
					}
				}
			}
		}
	}
	return annotations, logprobs
}
