package dragoman

// Event is one event of a streamed response. The set of types is closed: [ResponseStart],
// [PartStart], [PartDelta], [PartEnd], [ResponseEnd], [StreamError] and [Chunk].
//
// A decoder guarantees this order:
//
//   - The first event is a ResponseStart.
//   - Every part has one PartStart, any number of PartDeltas and one PartEnd. Parts of a choice
//     may overlap in time, but their indexes increase in the order of their starts.
//   - The last event is a ResponseEnd or a StreamError. Only a Chunk without meaning ([DONE], a
//     keep-alive) may follow it.
//   - If a stream is cut off, each open part still gets a PartEnd with what had arrived.
type Event interface {
	// Type returns the stable name of the event in stored JSON: "response_start", "part_start",
	// "part_delta", "part_end", "response_end", "stream_error" or "chunk".
	Type() string
	sealedEvent()
}

// The event types.
const (
	eventResponseStart = "response_start"
	eventPartStart     = "part_start"
	eventPartDelta     = "part_delta"
	eventPartEnd       = "part_end"
	eventResponseEnd   = "response_end"
	eventStreamError   = "stream_error"
	eventChunk         = "chunk"
)

// ResponseStart opens a stream. Response holds what is known so far: id, model, time and first
// usage counts, and, from a [Model], the losses of encoding the request. Response.Output is
// empty.
type ResponseStart struct {
	Response Response `json:"response"`
	// Extra holds the unknown fields of the wire event that this event was decoded from, keyed
	// by JSON pointer, unless Response holds them. An encoder of the same dialect writes them
	// into its wire event.
	Extra *Extra `json:"extra,omitzero"`
}

// PartStart opens a part. Part holds only the kind, and for a call its id and name.
type PartStart struct {
	Choice int `json:"choice,omitzero"`
	// Index is the position of the part in the choice, over all its messages.
	Index int `json:"index,omitzero"`
	// Message is the output position of the message that the part belongs to.
	Message int  `json:"message,omitzero"`
	Part    Part `json:"part,omitzero"`
	// Header holds the role, name, phase and extras of the message. It is set on the first part
	// of each message and nil on the others.
	Header *Message `json:"header,omitzero"`
	// Extra holds unknown fields, as in [ResponseStart].
	Extra *Extra `json:"extra,omitzero"`
}

// PartDelta carries a fragment for display. Never execute a fragment of a call's arguments;
// wait for the PartEnd.
type PartDelta struct {
	Choice int `json:"choice,omitzero"`
	Index  int `json:"index,omitzero"`
	// Kind is the kind of the part, such as "text"; see [Part].
	Kind string `json:"kind,omitzero"`
	// Text is appended to the text, thinking, refusal or arguments of the part, depending on
	// Kind.
	Text string `json:"text,omitzero"`
	// Summary is the position of the reasoning summary that Text belongs to, starting at 1; 0
	// means the thinking itself.
	Summary int `json:"summary,omitzero"`
	// Extra holds unknown fields, as in [ResponseStart]. A delta without Text only carries
	// Extra.
	Extra *Extra `json:"extra,omitzero"`
}

// PartEnd closes a part with its final value. It is the only event with a call that may run,
// and there is one per part.
type PartEnd struct {
	Choice int  `json:"choice,omitzero"`
	Index  int  `json:"index,omitzero"`
	Part   Part `json:"part,omitzero"`
	// Header replaces the header of the PartStart if the end of the message adds to it: its
	// status, its sidecar. Nil keeps the header of the PartStart.
	Header *Message `json:"header,omitzero"`
	// Extra holds unknown fields, as in [ResponseStart].
	Extra *Extra `json:"extra,omitzero"`
}

// ResponseEnd closes a stream that reached its terminal marker.
type ResponseEnd struct {
	// Stop is the stop of choice 0; Stops holds those of the other choices.
	Stop  Stop   `json:"stop,omitzero"`
	Stops []Stop `json:"stops,omitzero"`
	Usage Usage  `json:"usage,omitzero"`
	// Response holds what the terminal event reported about the whole response (extras, tier,
	// model). Its Output is empty, unless an extension changed messages whose parts were
	// already sent. Then Output is the whole output of choice 0 and replaces what the events
	// carried.
	Response Response `json:"response"`
	// Extra holds unknown fields, as in [ResponseStart].
	Extra *Extra `json:"extra,omitzero"`
}

// StreamError closes a stream that was cut off or reported an error.
type StreamError struct {
	Err *APIError `json:"error,omitzero"`
	// Usage holds the token counts reported so far; unreported counts are unknown, not zero.
	Usage Usage `json:"usage,omitzero"`
}

// Chunk holds the raw bytes of the events that follow it, up to the next Chunk. It is for
// display, extensions and recorders. Encoders ignore it unless Opaque is set. Raw is valid
// until the decoder gets its next input.
type Chunk struct {
	Dialect Dialect `json:"dialect,omitzero"`
	Raw     []byte  `json:"raw,omitzero"`
	// Opaque is set if Raw has no canonical form and no event represents it: an event of an
	// unknown type, or the progress of a tool that the provider runs. An encoder of the same
	// dialect writes Raw.
	Opaque bool `json:"opaque,omitzero"`
	// Loss is the loss that an encoder of another dialect reports: an unknown event, or unknown
	// fields of the events that follow. Nil means no loss.
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
