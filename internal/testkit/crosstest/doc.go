// Package crosstest has helpers for tests of several dialects: the codecs, conversations, and
// the streams of each dialect for a whole response.
package crosstest
