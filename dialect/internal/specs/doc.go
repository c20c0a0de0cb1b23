// Package specs has the tests that hold encoded requests against the official documents of
// the APIs, and against the rules of an API that no schema can state. The documents and the
// recorded requests are not part of the module: without them, tests skip.
package specs
