// Package bench measures this module against the vendors' Go SDKs and against copying, on the
// same bytes in the same run. It is a separate module, so that users of the library do not
// download the SDKs.
//
//	go test .                                # measures, prints the table, fails if a promise is broken
//	go test . -run TestRatios -update        # also writes ../docs/benchmarks.md
//	go test . -run xxx -bench . -count 10    # plain benchmarks, for benchstat
//
// The sections on the gateway and on agents are written by modules bench/gateway and
// bench/agents.
//
// The first build compiles all the SDKs: some minutes and 2.5 GB of memory.
package bench
