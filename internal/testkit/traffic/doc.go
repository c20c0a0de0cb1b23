// Package traffic has what tests with recorded traffic share: the recordings of each API, the
// requests of real agents, and the tables and lists that the tests print and check.
package traffic
