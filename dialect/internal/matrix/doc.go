// Package matrix converts every feature of every dialect to every other dialect and decodes the
// result. The wire form of each feature is in testdata; the outcome is docs/matrix.md:
//
//	go test ./dialect/internal/matrix -run TestMatrix -update
package matrix
