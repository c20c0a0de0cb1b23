package openairesponses

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// failureAfter returns the events that end a failed Responses stream: the events of end from its
// error event on, with sequence numbers that continue those of sent.
func failureAfter(sent [][]byte, end []byte) []byte {
	next := int64(0)
	for _, ev := range sse.Events(bytes.Join(sent, nil)) {
		if n, _, ok := sequenceNumber(ev.Data); ok {
			next = max(next, n+1)
		}
	}
	events := sse.Events(end)
	first := slices.IndexFunc(events, func(ev sse.Event) bool { return string(ev.Name) == "error" })
	var out []byte
	for _, ev := range events[max(first, 0):] {
		data := ev.Data
		if _, place, ok := sequenceNumber(data); ok {
			place.New = strconv.AppendInt(nil, next, 10)
			data = jsonwire.Splice(data, place)
			next++
		}
		out = sse.Append(out, string(ev.Name), data)
	}
	return out
}

// sequenceNumber returns the sequence number of an event and its position.
func sequenceNumber(data []byte) (n int64, place jsonwire.Edit, ok bool) {
	r := jsonwire.NewReader(data)
	if r.Kind() != '{' {
		return 0, place, false
	}
	for key := range r.Object() {
		if string(key) != "sequence_number" || r.Kind() != '0' {
			r.Skip()
			continue
		}
		raw := r.Raw()
		place.Start, place.End = r.Offset()-int64(len(raw)), r.Offset()
		n, ok = jsonwire.NewReader(raw).Int(), true
	}
	return n, place, ok && r.Err() == nil
}
