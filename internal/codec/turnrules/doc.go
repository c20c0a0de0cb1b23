// Package turnrules has rules about one turn of a conversation that hold in every dialect:
// why a response ended, in which order tool results follow the calls of a turn, and which
// result counts if a call has several.
package turnrules
