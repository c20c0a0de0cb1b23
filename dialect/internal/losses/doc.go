// Package losses has the tests that each conversion writes or reports what it was given: no
// part of a request, a response or a stream is dropped in silence, and each report points to
// its place.
package losses
