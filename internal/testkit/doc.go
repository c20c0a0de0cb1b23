// Package testkit has what tests of several packages need: reproducible seeds for
// properties, child processes, recorded traffic, and the files of the repository.
//
// Its subdirectories have generators of conversations (gen), suites for codecs
// (codectest) and inputs of benchmarks (benchdata).
package testkit
