// Package native has the tests of what passes unchanged: which requests, responses, errors
// and streams keep their bytes, and which must be written again because a reader could take
// them for something else.
package native
