// Package crosstest has what tests of several dialects share: the codecs, conversations, and
// streams of each dialect from a whole response.
package crosstest
