// Package gateway measures the gateway: against a reverse proxy, against Portkey's gateway, its
// translation against bifrost's, and its memory with ten thousand slow streams. It is a separate
// module, so that users of the library do not download bifrost.
//
//	go test .                                  # measures briefly, fails if the gateway is slow
//	go test . -run TestGateway -update         # measures, writes ../../docs/benchmarks.md
//	go test . -run TestGateway/bifrost -v      # one part: ReverseProxy, Portkey, bifrost
//	DRAGOMAN_LONG=1 go test -run Streams .     # ten thousand streams
//
// Servers run in separate processes. The test installs Portkey's gateway with npm. If that is not
// possible, its rows are missing.
package gateway
