// Package agents measures the loop of this module's agents against those of other
// frameworks: one task, one run, the same bytes from a model on the loopback
// interface. It is a module of its own, so that package bench stays light.
//
//	go test .                                      # measures, prints the table, fails where we fall behind
//	go test . -run TestAgents -rounds 80 -update   # also writes the section into ../../docs/benchmarks.md
//	go test . -run xxx -bench . -cpuprofile cpu    # plain benchmarks, for pprof and benchstat
//
// The first build compiles all the frameworks: about four minutes of CPU time.
package agents
