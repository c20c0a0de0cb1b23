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

// Element describes how to display one setting of an extension. It is data, so that a terminal
// or a page can display it without knowing the extension.
type Element struct {
	// Kind is the control for the setting: "toggle", "select", "number", "line" or "note".
	Kind string `json:"kind"`
	// Setting is the path of the setting in the extension's configuration. It is empty for a
	// "note".
	Setting     string `json:"setting,omitempty"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	// Choices are the values of a "select", in order.
	Choices []Choice `json:"choices,omitempty"`
	// When is the condition for displaying the element; nil means always.
	When *Condition `json:"when,omitempty"`
}

// Choice is one of several values.
type Choice struct {
	Value json.RawMessage `json:"value"`
	Label string          `json:"label"`
}

// Condition is true if a setting has a value.
type Condition struct {
	Setting string          `json:"setting"`
	Equals  json.RawMessage `json:"equals"`
}
