// Package losses tests that every conversion writes or reports what it is given: no part of a
// request, response or stream is dropped silently, and each loss points to its place.
package losses
