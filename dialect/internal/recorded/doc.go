// Package recorded replays recorded traffic of real servers and agents. Its tests compare what a
// codec decodes with an independent reading of the same bytes that shares no code with the codec.
// The recordings are not part of the module; the tests skip without them.
package recorded
