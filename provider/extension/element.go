package extension

import "encoding/json"

// The kinds of elements.
const (
	toggle = "toggle"
	choose = "select"
	number = "number"
	line   = "line"
	note   = "note"
)

// Element shows one setting of an extension. It is data, so that a terminal or a
// page can show it without knowing the extension.
type Element struct {
	// Kind says how the setting is shown: "toggle", "select", "number", "line" or "note".
	Kind string `json:"kind"`
	// Setting is the place of the setting in the extension's configuration; a
	// "note" has none.
	Setting     string `json:"setting,omitempty"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	// Choices of a "select", in order.
	Choices []Choice `json:"choices,omitempty"`
	// When says what must hold for it to be shown; nil: always.
	When *Condition `json:"when,omitempty"`
}

// Choice is one of several values.
type Choice struct {
	Value json.RawMessage `json:"value"`
	Label string          `json:"label"`
}

// Condition holds where a setting has a value.
type Condition struct {
	Setting string          `json:"setting"`
	Equals  json.RawMessage `json:"equals"`
}
