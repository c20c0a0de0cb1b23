// Package testkit has helpers for the tests of several packages: reproducible seeds for
// properties, child processes, recorded traffic, and the files of the repository.
//
// Its subpackages have generators of conversations (gen), test suites for codecs (codectest) and
// inputs of benchmarks (benchdata).
package testkit
