// Package textkit has what all packages need for names and other short texts: wildcard
// patterns, suggestions for misspelled names, counts with their noun, characters that a
// terminal or a model must not see, spellings of credentials, and the fence around the
// output of a tool. It imports nothing from this module.
package textkit
