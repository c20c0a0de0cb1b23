package openairesponses

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Annotations and logprobs arrive in separate events or with the deltas, and again in the final
// message, which is where the decoder reads them. If the final message does not repeat them, only
// the chunks have them, and they are lost if the chunks are not passed through.

// recordMetadata records that an event has annotations or logprobs. It reports a loss if the
// message is unknown or has ended.
func (d *streamDecoder) recordMetadata(note func(*streamItem)) {
	it := d.find()
	if it == nil || it.kind != messageItem || it.final != nil {
		d.loss = metadataLoss(true, true)
		return
	}
	note(it)
}

// loseMetadata sets the loss of a message that ended with raw, or that has no final form if raw
// is nil.
func (d *streamDecoder) loseMetadata(it *streamItem, raw []byte) {
	if !it.logprobs && it.annotations == 0 {
		return
	}
	annotations, logprobs := 0, false
	if raw != nil {
		annotations, logprobs = countMetadata(raw)
	}
	if l := metadataLoss(it.annotations > annotations, it.logprobs && !logprobs); l != nil {
		d.loss = l
	}
	it.annotations, it.logprobs = 0, false
}

// metadataLoss returns the loss of annotations, logprobs, or both.
func metadataLoss(annotations, logprobs bool) *dragoman.Loss {
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
		Detail: what + " of a stream are not collected, because the final message does not repeat them",
	}
}

// countMetadata counts the annotations of a message, and reports whether it has logprobs.
func countMetadata(raw []byte) (annotations int, logprobs bool) {
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
