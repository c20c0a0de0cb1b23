package dragoman

// Event is one step of a streamed response. The set is sealed:
// [ResponseStart], [PartStart], [PartDelta], [PartEnd], [ResponseEnd],
// [StreamError] and [Chunk].
//
// A decoder promises: one ResponseStart first; for every part one PartStart,
// any number of PartDelta and one PartEnd, in this order; parts of a choice may
// overlap in time, but their indexes grow in order of their start; one
// ResponseEnd or StreamError last, behind which only a Chunk
// that says nothing ([DONE], a keep-alive) may come. A part that was open when a stream broke
// still gets its PartEnd, with what had arrived.
type Event interface {
	// Type is the stable name of the event in stored JSON: "response_start",
	// "part_start", "part_delta", "part_end", "response_end", "stream_error" or "chunk".
	Type() string
	sealedEvent()
}

// The types of event.
const (
	eventResponseStart = "response_start"
	eventPartStart     = "part_start"
	eventPartDelta     = "part_delta"
	eventPartEnd       = "part_end"
	eventResponseEnd   = "response_end"
	eventStreamError   = "stream_error"
	eventChunk         = "chunk"
)

// ResponseStart opens a stream with what is known of the response so far:
// id, model, time, first usage, and of a [Model] what encoding the request lost.
// Response.Output is empty.
type ResponseStart struct {
	Response Response `json:"response"`
	// Extra holds the unknown fields of the wire event that the event was read
	// from, by their JSON pointers in it, unless Response holds them. An encoder
	// of the same dialect writes them into the wire event that it writes.
	Extra *Extra `json:"extra,omitzero"`
}

// PartStart opens a part. Part is a skeleton of the final one: its kind, and
// for a call its id and name.
type PartStart struct {
	Choice int `json:"choice,omitzero"`
	// Index is the position of the part in the choice, over all its messages.
	Index int `json:"index,omitzero"`
	// Message is the position in the output of the message the part belongs to.
	Message int  `json:"message,omitzero"`
	Part    Part `json:"part,omitzero"`
	// Header is the message's role, name, phase and extras, on the first part
	// of each message; nil on others.
	Header *Message `json:"header,omitzero"`
	// Extra is like that of [ResponseStart].
	Extra *Extra `json:"extra,omitzero"`
}

// PartDelta carries a fragment for display. A fragment of a call's arguments
// is never executable; wait for its PartEnd.
type PartDelta struct {
	Choice int `json:"choice,omitzero"`
	Index  int `json:"index,omitzero"`
	// Kind is the kind of the part, as in [Part], such as "text".
	Kind string `json:"kind,omitzero"`
	// Text is appended to what the part's kind grows: text, thinking, refusal,
	// arguments.
	Text string `json:"text,omitzero"`
	// Summary is the position of the reasoning summary that Text belongs to,
	// counted from 1; 0 means the thinking itself.
	Summary int `json:"summary,omitzero"`
	// Extra is like that of [ResponseStart]. A delta without Text only carries
	// Extra.
	Extra *Extra `json:"extra,omitzero"`
}

// PartEnd closes a part with its final value. It is the only event that
// carries a call to run, and it comes once.
type PartEnd struct {
	Choice int  `json:"choice,omitzero"`
	Index  int  `json:"index,omitzero"`
	Part   Part `json:"part,omitzero"`
	// Header replaces that of the message's start, where the end of a message
	// knows more: its status, its sidecar. Nil keeps the one of the start.
	Header *Message `json:"header,omitzero"`
	// Extra is like that of [ResponseStart].
	Extra *Extra `json:"extra,omitzero"`
}

// ResponseEnd closes a stream that reached its terminal marker.
type ResponseEnd struct {
	// Stop of choice 0; Stops holds those of the others.
	Stop  Stop   `json:"stop,omitzero"`
	Stops []Stop `json:"stops,omitzero"`
	Usage Usage  `json:"usage,omitzero"`
	// Response holds what the terminal event said of the whole (extras, tier,
	// model). Its Output is empty, unless an extension changed messages whose parts
	// were already sent: then it is the whole output of choice 0, and replaces that of
	// the events.
	Response Response `json:"response"`
	// Extra is like that of [ResponseStart].
	Extra *Extra `json:"extra,omitzero"`
}

// StreamError closes a stream that broke or reported an error.
type StreamError struct {
	Err *APIError `json:"error,omitzero"`
	// Usage holds the token counts reported so far; unreported counts are unknown, not zero.
	Usage Usage `json:"usage,omitzero"`
}

// Chunk is the raw form of the events that follow it, up to the next Chunk. It
// is for display, extensions and recorders; encoders write the events and ignore
// it, unless Opaque is set. Raw is valid until the decoder is fed again.
type Chunk struct {
	Dialect Dialect `json:"dialect,omitzero"`
	Raw     []byte  `json:"raw,omitzero"`
	// Opaque is set if no event stands for Raw, because it has no canonical form:
	// an event of an unknown type, or the progress of a tool that the provider
	// runs. An encoder of the same dialect writes Raw.
	Opaque bool `json:"opaque,omitzero"`
	// Loss is what an encoder of another dialect reports: an unknown event, or
	// unknown fields of the events that follow. Nil means nothing.
	Loss *Loss `json:"loss,omitzero"`
}

// Type implements [Event].
func (*ResponseStart) Type() string { return eventResponseStart }
func (*PartStart) Type() string     { return eventPartStart }   // Type implements [Event].
func (*PartDelta) Type() string     { return eventPartDelta }   // Type implements [Event].
func (*PartEnd) Type() string       { return eventPartEnd }     // Type implements [Event].
func (*ResponseEnd) Type() string   { return eventResponseEnd } // Type implements [Event].
func (*StreamError) Type() string   { return eventStreamError } // Type implements [Event].
func (*Chunk) Type() string         { return eventChunk }       // Type implements [Event].

func (*ResponseStart) sealedEvent() {}
func (*PartStart) sealedEvent()     {}
func (*PartDelta) sealedEvent()     {}
func (*PartEnd) sealedEvent()       {}
func (*ResponseEnd) sealedEvent()   {}
func (*StreamError) sealedEvent()   {}
func (*Chunk) sealedEvent()         {}
