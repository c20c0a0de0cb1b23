// Package matrix has the tests that write every feature of every dialect in every other one,
// and read it back. What each feature looks like on each wire is in testdata; the result is
// docs/matrix.md:
//
//	go test ./dialect/internal/matrix -run TestMatrix -update
package matrix
