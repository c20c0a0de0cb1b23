// Package agents measures the agent loop of this module against those of other frameworks: one
// task, one run, the same bytes from a model on the loopback interface. It is a separate
// module, so that module bench has few dependencies.
//
//	go test .                                      # measures, prints the table, fails if we fall behind
//	go test . -run TestAgents -rounds 80 -update   # also writes the section into ../../docs/benchmarks.md
//	go test . -run xxx -bench . -cpuprofile cpu    # plain benchmarks, for pprof and benchstat
//
// The first build compiles all the frameworks: about four minutes of CPU time.
package agents
