// Package modelcall has what packages of this module exchange about a call to a model,
// and what the public interfaces between them cannot carry:
//
//   - context values: the gate for model calls, the request for each model of a chain,
//     beta headers, positions, patches, and how a stream is relayed;
//   - [PassRequest] and [PassResponse], for requests that are forwarded unchanged;
//   - [Wire], what a session needs of a model to keep a native history for it.
//
// Package provider reads the values. The agent, the gateway and the session set them.
package modelcall
