// Package traffic has helpers for tests with recorded traffic: the recordings of each API, the
// requests of real agents, and the tables and lists that the tests print and check.
package traffic
