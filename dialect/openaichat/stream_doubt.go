package openaichat

import (
	"bytes"
	"errors"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/go-json-experiment/json/jsontext"
)

// A client that is passed the bytes of a stream must not find another call in
// them than the one we tell of, nor run one that we say must not run. An event
// that could make it do so is not passed on: an empty chunk takes its place, and
// the rest of the stream is written from what we read.

// The members of a stream that say which call runs, and whether it may.
var (
	chunkMembers    = []string{"choices", "error", "object", "id", "model", "created", "usage", "service_tier"}
	choiceMembers   = []string{"index", "delta", "finish_reason", "message", "native_finish_reason", "error"}
	callMembers     = []string{"index", "function", "id", "type", "custom"}
	functionMembers = []string{"arguments", "name"}
	customMembers   = []string{"input", "name"}
)

// doubts is what two readers could take differently in the event at hand.
type doubts struct {
	twice     bool // a member stands twice
	unsettled bool // it does not fit what came before it
	finishing bool // it has a finish reason after which calls may run
	touched   []*call
	misread   error // better placed than the reader's
	anew      bool  // it was reported that an event is not passed on
	renamed   bool  // there was a call that clients know by another name
}

func (d *doubts) reset() {
	d.twice, d.unsettled, d.finishing, d.misread = false, false, false, nil
	clear(d.touched)
	d.touched = d.touched[:0]
}

// again takes note of the member i of an object.
func (d *doubts) again(seen *wirekit.Members, i int) {
	if seen.Again(i) {
		d.twice = true
	}
}

// twin takes note of a key that is none of the known: many readers take it for
// one of them if it is only spelled in another case. Then it is not kept.
func (d *doubts) twin(known []string, key []byte) bool {
	twin := wirekit.Folds(known, key)
	d.twice = d.twice || twin
	return twin
}

// doubtful reports whether the event that was read must not be passed on. The
// calls that it says something of twice must not run.
func (d *streamDecoder) doubtful() bool {
	if d.twice {
		for _, k := range d.touched {
			k.unclear = true
		}
	}
	doubtful := d.twice || d.unsettled || d.finishing && slices.ContainsFunc(d.choices, (*choice).ambiguous)
	if (doubtful || d.renamed) && !d.anew && !d.o.NoNative {
		d.anew = true
		wirekit.ReportAnew(&d.rep, doubtful)
	}
	return doubtful || d.renamed
}

// ambiguous reports, once, whether a choice that finished has a call whose
// arguments are not one JSON object, or have two meanings: its finish reason would
// make it run.
func (c *choice) ambiguous() bool {
	if c == nil || c.checked || c.finish == "" || !mayRun(c.finish) {
		return false
	}
	c.checked = true
	return slices.ContainsFunc(c.calls, func(k *call) bool {
		text := k.text()
		if len(text) == 0 {
			return false
		}
		err := jsonwire.Check(text)
		if k.payload == dragoman.PayloadObject && (err != nil || bytes.TrimLeft(text, " \t\r\n")[0] != '{') {
			return dragoman.CheckArguments(string(text)) != nil
		}
		return errors.Is(err, jsontext.ErrDuplicateName)
	})
}

// finished takes a finish reason. One that takes back that nothing runs is not
// passed on.
func (c *choice) finished(word string) {
	have := len(c.finish)
	c.finish = laterWord(c.finish, word)
	c.d.replaced(have, len(c.finish))
	c.d.unsettled = c.d.unsettled || c.finish != word
	c.d.finishing = c.d.finishing || mayRun(word)
}

// disputes finds what in a fragment makes its call another one. A new id alone
// does not, as some servers make one for each fragment (quirk C3), but a client
// gets to see only one.
func (c *choice) disputes(k *call, f fragment) {
	c.d.unsettled = c.d.unsettled || f.key != "" && k.key != "" && f.key != k.key
	if at := c.byIndex[f.index]; f.indexed && k.indexed && k.index != f.index && at != nil && at != k {
		const why = "a fragment has the id of one call and the index of another"
		c.dispute(k, why)
		c.dispute(at, why)
	}
	if f.custom && k.part != nil && k.payload != dragoman.PayloadText || f.legacy != k.legacy {
		c.dispute(k, "the kind of the call changed while it was streamed")
	}
}

// dispute says that a call must not run, and why.
func (c *choice) dispute(k *call, why string) {
	k.disputed = why
	c.d.unsettled = true
}
