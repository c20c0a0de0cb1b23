package wire

// Simulator describes where the simulator finds what its faults change.
type Simulator struct {
	// Faults are the ids of the stream faults that the dialect can have, besides those
	// that all dialects have.
	Faults []string
	// Text is the position of a text fragment in an event.
	Text Fragment
	// Input is the position of a fragment of call arguments in an event. It is empty if
	// calls are in a list within the message.
	Input Fragment
	// Block is the field with the number of the block or item that an event belongs to.
	Block string
	// Blank are events without content, before the stream. A field "model" gets the
	// model of the stream.
	Blank []Blank
}

// Fragment is the position of a string in an event.
type Fragment struct {
	// Type is the type of the events that have it; empty means all.
	Type string
	// Path leads to the object with Field.
	Path  []any
	Field string
}

// Blank is an event without content.
type Blank struct{ Name, Data string }
