package wire

// Simulator says where the simulator finds what its faults change.
type Simulator struct {
	// Faults are the ids of the stream faults that the dialect can have, besides those of
	// all dialects.
	Faults []string
	// Text is where an event has a fragment of text.
	Text Fragment
	// Input is where an event has a fragment of the arguments of a call. It is empty where
	// calls are in a list within the message.
	Input Fragment
	// Block is the field with the number of the block or item that an event belongs to.
	Block string
	// Blank are events without content, in front of a stream. A field "model" gets the
	// model of the stream.
	Blank []Blank
}

// Fragment is the place of a string in an event.
type Fragment struct {
	// Type is that of the events that have it; empty means all.
	Type string
	// Path leads to the object with Field.
	Path  []any
	Field string
}

// Blank is an event without content.
type Blank struct{ Name, Data string }
