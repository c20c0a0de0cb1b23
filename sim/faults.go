package sim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
)

// The outcomes.
const (
	// intact: the answer is the one that was meant.
	intact = "intact"
	// barred: the answer is read, and its calls must not run.
	barred = "barred"
	// fails: reading the answer is an error, and no call of it may run.
	fails = "fails"
)

// Fault is something that goes wrong on demand: a habit of real servers that
// breaks clients (quirks C1 to C41, under their ids), or a failure.
type Fault struct {
	// ID names it in small letters: "c2", "cut".
	ID string
	// About says in a sentence what the client meets.
	About string
	// Dialects are those in which there is such a thing; asked for in another, it
	// is a bad request.
	Dialects []dragoman.Dialect
	// StreamOnly says that an answer that is not streamed cannot have it.
	StreamOnly bool
	// Outcome says what a correct client makes of the fault: "intact", the answer is the
	// one that was meant; "barred", its calls must not run; "fails", reading it is an error.
	Outcome string

	events func([]dragoman.Event) []dragoman.Event
	frames func(*wireStream)
	script func(*script, dialect.Codec)
}

// Faults lists all faults, each once, in the order of their ids.
func Faults() []Fault {
	list := slices.Concat(streamFaults(), failures())
	for i := range list {
		list[i].Dialects = slices.Clone(list[i].Dialects)
	}
	return list
}

// faultNamed finds a fault; the error names those that there are.
func faultNamed(id string) (*Fault, error) {
	var ids []string
	for _, f := range Faults() {
		if f.ID == strings.ToLower(id) {
			return &f, nil
		}
		ids = append(ids, f.ID)
	}
	return nil, &dragoman.APIError{
		Class: dragoman.ErrorBadRequest, Param: "fault",
		Message: fmt.Sprintf("there is no fault %.40q; there are %s", id, strings.Join(ids, ", ")),
	}
}

// listed are words with commas between them.
func listed[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

// fits says why a fault cannot be had; nil where it can.
func (f *Fault) fits(d dragoman.Dialect, stream bool) error {
	why := ""
	switch {
	case !slices.Contains(f.Dialects, d):
		why = fmt.Sprintf("there is no such thing in %s, but in %s", d, listed(f.Dialects))
	case f.StreamOnly && !stream:
		why = "it is one of streams, and the answer is none"
	default:
		return nil
	}
	return &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "fault", Message: "the fault " + f.ID + ": " + why}
}

func streamFaults() []Fault {
	list := []Fault{
		{ID: "c1", frames: chatNoIndex, About: "Fragments of calls carry no index, and an id only where a call begins."},
		{ID: "c2", frames: chatIndexZero, About: "All parallel calls have the index 0."},
		{ID: "c3", frames: chatIDEverywhere, About: "Every fragment of a call repeats its id."},
		{ID: "c4", frames: hugeIndex, About: "Calls and blocks are counted from a billion on."},
		{ID: "c5", frames: chatNameAgain, About: "Fragments repeat the name of the call, or have an empty one, or null; one name comes in two."},
		{ID: "c6", frames: func(s *wireStream) { chatBundled(s, false, false) }, About: "The fragment that names a call has the first of its arguments, too."},
		{ID: "c7", frames: wholeArguments, About: "The arguments of a call come in one piece; in Chat as an object instead of a string."},
		{ID: "c8", frames: chatNullish, About: "Chunks with null or nothing where choices, deltas, roles, contents, calls and usage should be."},
		{ID: "c9", frames: chatUsageEverywhere, About: "Every chunk has usage, all zeros, and the counts stand in the choice that ends."},
		{ID: "c10", frames: blankTail, About: "White space follows arguments that were whole already."},
		{ID: "c11", frames: doneTwice, About: "Everything that is done is said to be done twice."},
		{ID: "c12", frames: chatOddFinish, About: "Chunks in the middle have an empty reason for the end, and data follows the mark at the end."},
		{ID: "c13", frames: noEnd, Outcome: fails, About: "The stream ends without the event that says so."},
		{ID: "c14", events: failsMidway, Outcome: fails, About: "An error comes in the middle of a stream that began with 200."},
		{ID: "c15", frames: comments, About: "Comments stand between all events."},
		{ID: "c16", frames: bytewise, About: "Each byte is sent by itself, so that characters are cut in two."},
		{ID: "c17", frames: loneSurrogate, About: "The text holds half of a character; it is read as U+FFFD."},
		{ID: "c18", frames: oddLines, About: "Lines end with CR LF, one is very long, and the last event lacks its end."},
		{ID: "c19", frames: emptyInputs, About: "The input of a call begins with an empty fragment."},
		{ID: "c20", frames: noStops, About: "No block is ended before the message is."},
		{ID: "c21", frames: interleaved, About: "The fragments of parallel calls take turns."},
		{ID: "c22", frames: signatureTwice, About: "The signature of a thought comes before it, and once more behind it."},
		{ID: "c23", frames: vendorEvents, About: "Events have no names outside of their data, and some are a vendor's own."},
		{ID: "c24", frames: emptyOutput, About: "The response that is complete lists no output."},
		{ID: "c25", frames: chatSparseIndex, About: "The indexes of calls start at three and leave gaps."},
		{ID: "c26", frames: endIncomplete, Outcome: barred, About: "The response ends as incomplete, its calls whole."},
		{ID: "c27", frames: callsApart, About: "Each parallel call comes in a chunk of its own, without an id, and one of them twice."},
		{ID: "c28", frames: partialArgs, About: "Arguments come as paths and values, texts in pieces."},
		{ID: "c29", frames: otherFraming, About: "A JSON array is streamed where events were asked for, and the reverse."},
		{ID: "c30", frames: emptySigned, About: "The last part has no text, but a signature."},
		{ID: "c31", frames: vanishingUsage, About: "The counts of usage are there in some chunks, and gone in the last."},
		{ID: "c32", frames: bareLines, About: "Calls have no ids and a line each, and the end gives no reason."},
		{ID: "c33", frames: oddFrames, About: "Blocks of text have no end, and all frames a member that nobody documented."},
		{ID: "c34", events: endsWithLength, Outcome: barred, About: "The output limit ended the answer behind a call that looks whole."},
		{ID: "c35", events: singleCharacters, About: "Everything comes one character at a time."},
		{ID: "c36", events: twoChoices, About: "Two answers come at once, their fragments taking turns."},
		{ID: "c37", frames: secondStart, Outcome: fails, About: "Another message begins before the first has ended."},
		{ID: "c38", frames: together, About: "One chunk has text and a call."},
		{ID: "c39", frames: openEnd, Outcome: fails, About: "The stream ends while a part is open."},
		{ID: "c40", frames: sameNumbers, About: "Events have the same sequence number, or none."},
		{ID: "c41", frames: emptyFirst, About: "The stream begins with events that say nothing."},
	}
	for i := range list {
		list[i].StreamOnly = true
		list[i].Dialects = dialectsWith(list[i].ID)
		if list[i].Outcome == "" {
			list[i].Outcome = intact
		}
	}
	return list
}

// everywhere are the stream faults of all dialects.
var everywhere = []string{"c13", "c14", "c16", "c17", "c34", "c35", "c39"}

// dialectsWith returns the dialects that can have a stream fault.
func dialectsWith(id string) (out []dragoman.Dialect) {
	for _, codec := range dialects.All() {
		if slices.Contains(everywhere, id) || slices.Contains(wire.Of(codec).Simulator.Faults, id) {
			out = append(out, codec.Dialect())
		}
	}
	return out
}

// slowFirst is how long the first byte of "slow-first-byte" takes.
const slowFirst = 30 * time.Second

func failures() []Fault {
	status := func(class dragoman.ErrorClass, code int, retry time.Duration) func(*script, dialect.Codec) {
		return func(s *script, codec dialect.Codec) {
			*s = errorScript(codec, &dragoman.APIError{Class: class, Status: code, RetryAfter: retry, Message: "the simulator was asked for this error"})
			if !wire.Of(codec).Headers.StatusInBody {
				s.status = code
			}
		}
	}
	list := []Fault{
		{ID: "cut", About: "The connection is dropped in the middle of the answer.", script: func(s *script, _ dialect.Codec) { s.halve(); s.end = endCut }},
		{ID: "stall", About: "Half of the answer comes, then nothing for an hour.", script: func(s *script, _ dialect.Codec) { s.halve(); s.end = endStall }},
		{ID: "429", About: "Too many requests: the client is told to wait for two seconds.", script: status(dragoman.ErrorRateLimit, http.StatusTooManyRequests, 2*time.Second)},
		{ID: "500", About: "The server failed.", script: status(dragoman.ErrorServer, http.StatusInternalServerError, 0)},
		{ID: "529", About: "The server has too much to do.", script: status(dragoman.ErrorOverloaded, 529, 0)},
		{ID: "error-200", About: "An error is the whole of an answer with the status 200.", script: (*script).errorIn200},
		{ID: "empty", About: "The answer has the status 200 and no body.", script: func(s *script, _ dialect.Codec) { s.chunks = nil }},
		{ID: "html", About: "The answer is a page of HTML with the status 200.", script: func(s *script, _ dialect.Codec) {
			s.header.Set("content-type", "text/html; charset=utf-8")
			s.chunks = [][]byte{[]byte("<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><p>Please sign in.</p></body></html>\n")}
		}},
		{ID: "malformed", About: "JSON in the middle of the answer is not JSON.", script: (*script).malform},
		{ID: "truncated", About: "The JSON at the end of the answer is cut off, and the connection ends as if it were whole.", script: func(s *script, _ dialect.Codec) { s.truncate() }},
		{ID: "slow-first-byte", Outcome: intact, About: "The first byte takes half a minute.", script: func(s *script, _ dialect.Codec) { s.first = slowFirst }},
	}
	for i := range list {
		for _, codec := range dialects.All() {
			list[i].Dialects = append(list[i].Dialects, codec.Dialect())
		}
		if list[i].Outcome == "" {
			list[i].Outcome = fails
		}
	}
	return list
}
