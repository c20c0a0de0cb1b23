// Package recorded has the tests that replay recorded traffic of real servers and agents, and
// compare what a codec reads with a reading that shares no code with it. The recordings are
// not part of the module: without them, tests skip.
package recorded
