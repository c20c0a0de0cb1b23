// Package gateway measures the gateway: against a reverse proxy, against Portkey's
// gateway, its translation against bifrost's, and how it holds ten thousand slow
// streams. It is a module of its own, so that nobody who uses the library downloads
// bifrost.
//
//	go test .                                  # measures a little, fails where it is slow
//	go test . -run TestGateway -update         # measures, writes ../../docs/benchmarks.md
//	go test . -run TestGateway/bifrost -v      # one part alone: ReverseProxy, Portkey, bifrost
//	DRAGOMAN_LONG=1 go test -run Streams .     # ten thousand streams
//
// Servers run in processes of their own. Portkey's gateway is installed with npm for
// the time of the test; where that cannot be, its lines are missing.
package gateway
