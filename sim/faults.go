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

// The outcomes of faults.
const (
	// intact: the client reads the intended response.
	intact = "intact"
	// blocked: the client reads the response, but its calls must not run.
	blocked = "blocked"
	// fails: reading the response is an error, and none of its calls may run.
	fails = "fails"
)

// Fault is an error that the simulator produces on demand: a quirk of real servers that breaks
// clients (quirks C1 to C41, by their ids), or a failure.
type Fault struct {
	// ID is the name in lower case: "c2", "cut".
	ID string
	// Description describes in a sentence what the client receives.
	Description string
	// Dialects lists the dialects that can have the fault. In another dialect, it is a bad
	// request.
	Dialects []dragoman.Dialect
	// StreamOnly reports whether only streamed responses can have the fault.
	StreamOnly bool
	// Outcome describes what a correct client does: "intact", it reads the intended
	// response; "blocked", it reads the response but must not run its calls; "fails", reading
	// it is an error.
	Outcome string

	events func([]dragoman.Event) []dragoman.Event
	frames func(*wireStream)
	script func(*script, dialect.Codec)
}

// Faults returns all faults, in the order of their ids.
func Faults() []Fault {
	list := slices.Concat(streamFaults(), failures())
	for i := range list {
		list[i].Dialects = slices.Clone(list[i].Dialects)
	}
	return list
}

// faultNamed finds a fault by its id. The error lists the known ids.
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
		Message: fmt.Sprintf("unknown fault %.40q: known faults are %s", id, strings.Join(ids, ", ")),
	}
}

// listed joins words with commas.
func listed[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

// fits returns an error if a response cannot have the fault.
func (f *Fault) fits(d dragoman.Dialect, stream bool) error {
	why := ""
	switch {
	case !slices.Contains(f.Dialects, d):
		why = fmt.Sprintf("it does not exist in %s, only in %s", d, listed(f.Dialects))
	case f.StreamOnly && !stream:
		why = "it needs a stream, and the response is a single JSON document"
	default:
		return nil
	}
	return &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "fault", Message: "fault " + f.ID + ": " + why}
}

func streamFaults() []Fault {
	list := []Fault{
		{ID: "c1", frames: chatNoIndex, Description: "Fragments of calls carry no index, and an id only in the first fragment of a call."},
		{ID: "c2", frames: chatIndexZero, Description: "All parallel calls have index 0."},
		{ID: "c3", frames: chatIDEverywhere, Description: "Every fragment of a call repeats its id."},
		{ID: "c4", frames: hugeIndex, Description: "The indexes of calls and blocks start at a billion."},
		{ID: "c5", frames: chatNameAgain, Description: "Fragments repeat the name of the call, or have an empty or null name; one name is split over two fragments."},
		{ID: "c6", frames: func(s *wireStream) { chatBundled(s, false, false) }, Description: "The fragment with the name of a call also has the first part of its arguments."},
		{ID: "c7", frames: wholeArguments, Description: "The arguments of a call come in one fragment; in Chat as an object instead of a string."},
		{ID: "c8", frames: chatNullish, Description: "In some chunks, choices, deltas, roles, contents, calls or usage are null or missing."},
		{ID: "c9", frames: chatUsageEverywhere, Description: "Every chunk has usage with zeros, and the real counts are in the last choice."},
		{ID: "c10", frames: blankTail, Description: "White space follows complete arguments."},
		{ID: "c11", frames: doneTwice, Description: "Every event that marks something as done comes twice."},
		{ID: "c12", frames: chatOddFinish, Description: "Chunks in the middle have an empty finish reason, and data follows the end marker."},
		{ID: "c13", frames: noEnd, Outcome: fails, Description: "The stream ends without its final event."},
		{ID: "c14", events: failsMidway, Outcome: fails, Description: "An error occurs in the middle of a stream with status 200."},
		{ID: "c15", frames: comments, Description: "Comments occur between all events."},
		{ID: "c16", frames: bytewise, Description: "Each byte is sent separately, so that characters are split."},
		{ID: "c17", frames: loneSurrogate, Description: "The text contains half of a surrogate pair; clients read it as U+FFFD."},
		{ID: "c18", frames: oddLines, Description: "Lines end with CR LF, one line is very long, and the last event is not terminated."},
		{ID: "c19", frames: emptyInputs, Description: "The input of a call begins with an empty fragment."},
		{ID: "c20", frames: noStops, Description: "Blocks have no end event before the end of the message."},
		{ID: "c21", frames: interleaved, Description: "The fragments of parallel calls are interleaved."},
		{ID: "c22", frames: signatureTwice, Description: "The signature of reasoning comes before it, and again after it."},
		{ID: "c23", frames: vendorEvents, Description: "Events have no event field, and some are vendor extensions."},
		{ID: "c24", frames: emptyOutput, Description: "The completed response has an empty output list."},
		{ID: "c25", frames: chatSparseIndex, Description: "The indexes of calls start at three and leave gaps."},
		{ID: "c26", frames: endIncomplete, Outcome: blocked, Description: "The response ends as incomplete, although its calls are complete."},
		{ID: "c27", frames: callsApart, Description: "Each parallel call comes in a separate chunk without an id, and one of them comes twice."},
		{ID: "c28", frames: partialArgs, Description: "Arguments come as paths and values, strings in several fragments."},
		{ID: "c29", frames: otherFraming, Description: "A JSON array is streamed where events were asked for, and the reverse."},
		{ID: "c30", frames: emptySigned, Description: "The last part has a signature but no text."},
		{ID: "c31", frames: vanishingUsage, Description: "Usage counts are in some chunks, but missing in the last."},
		{ID: "c32", frames: bareLines, Description: "Calls have no ids and are on separate lines, and the end has no reason."},
		{ID: "c33", frames: oddFrames, Description: "Text blocks have no end event, and all frames have an undocumented field."},
		{ID: "c34", events: endsWithLength, Outcome: blocked, Description: "The output limit ended the response after a call that looks complete."},
		{ID: "c35", events: singleCharacters, Description: "Everything comes one character at a time."},
		{ID: "c36", events: twoChoices, Description: "Two candidates come at once, with interleaved fragments."},
		{ID: "c37", frames: secondStart, Outcome: fails, Description: "Another message begins before the first ends."},
		{ID: "c38", frames: together, Description: "One chunk has text and a call."},
		{ID: "c39", frames: openEnd, Outcome: fails, Description: "The stream ends while a part is open."},
		{ID: "c40", frames: sameNumbers, Description: "Events have the same sequence number, or none."},
		{ID: "c41", frames: emptyFirst, Description: "The stream begins with empty events."},
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

// allDialectFaults lists the stream faults of all dialects.
var allDialectFaults = []string{"c13", "c14", "c16", "c17", "c34", "c35", "c39"}

// dialectsWith returns the dialects that can have a stream fault.
func dialectsWith(id string) (out []dragoman.Dialect) {
	for _, codec := range dialects.All() {
		if slices.Contains(allDialectFaults, id) || slices.Contains(wire.Of(codec).Simulator.Faults, id) {
			out = append(out, codec.Dialect())
		}
	}
	return out
}

// slowFirst is the delay of the first byte with "slow-first-byte".
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
		{ID: "cut", Description: "The connection is dropped in the middle of the response.", script: func(s *script, _ dialect.Codec) { s.halve(); s.end = endCut }},
		{ID: "stall", Description: "The connection stalls for an hour after half of the response.", script: func(s *script, _ dialect.Codec) { s.halve(); s.end = endStall }},
		{ID: "429", Description: "Too many requests: the client has to wait for two seconds.", script: status(dragoman.ErrorRateLimit, http.StatusTooManyRequests, 2*time.Second)},
		{ID: "500", Description: "The server fails.", script: status(dragoman.ErrorServer, http.StatusInternalServerError, 0)},
		{ID: "529", Description: "The server is overloaded.", script: status(dragoman.ErrorOverloaded, 529, 0)},
		{ID: "error-200", Description: "The response is an error with status 200.", script: (*script).errorIn200},
		{ID: "empty", Description: "The response has status 200 and no body.", script: func(s *script, _ dialect.Codec) { s.chunks = nil }},
		{ID: "html", Description: "The response is an HTML page with status 200.", script: func(s *script, _ dialect.Codec) {
			s.header.Set("content-type", "text/html; charset=utf-8")
			s.chunks = [][]byte{[]byte("<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><p>Please sign in.</p></body></html>\n")}
		}},
		{ID: "malformed", Description: "The response contains invalid JSON in the middle.", script: (*script).malform},
		{ID: "truncated", Description: "The JSON at the end of the response is cut off, but the connection ends normally.", script: func(s *script, _ dialect.Codec) { s.truncate() }},
		{ID: "slow-first-byte", Outcome: intact, Description: "The first byte comes after 30 seconds.", script: func(s *script, _ dialect.Codec) { s.first = slowFirst }},
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
