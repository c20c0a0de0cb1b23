// Approval-web is a web server whose users approve tool calls. The run ends with the request
// that started it; the decision is another request, which continues the run from the store.
//
//	$ go run ./examples/approval-web
//	POST /runs: 202 {"run":"1","waiting":[{"arguments":{"path":"old.txt"},"call":"call_…","tool":"delete_file"}]}
//	POST /runs/1/calls/call_…: 200 {"output":"delete_file says: deleted old.txt"}
//	POST /runs/1/calls/call_…: 409 the call is not waiting for approval
package main
