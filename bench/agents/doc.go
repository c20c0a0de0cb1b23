// Package agents measures the loop of this module's agents against those of other
// frameworks: one task, one run, the same bytes from a model on the loopback
// interface. It is a module of its own, so that package bench stays light.
//
//	go test .                                # measures, prints the table, fails where a promise is broken
//	go test . -run TestAgents -update        # also writes the section into ../../docs/benchmarks.md
//	go test . -run xxx -bench . -cpuprofile  # plain benchmarks, for pprof and benchstat
package agents
