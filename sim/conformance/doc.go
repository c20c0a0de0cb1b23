// Package conformance has test suites for implementations of models over HTTP and of
// dialects. The server is always the simulator, over real HTTP.
//
//	func TestMyProvider(t *testing.T) {
//		conformance.Model{
//			Codec: openaichat.Codec{},
//			Open:  func(_ *testing.T, url string) dragoman.Model { return myprovider.New(url + "/v1") },
//		}.Run(t)
//	}
//
// [Model] tests a model, streamed and not: text, calls, parallel calls, freeform and namespaced
// tools, replay of reasoning and images, structured output, errors of each class, cancellation,
// slow readers, and that no server fault makes it run an incomplete call. [Dialect] tests a
// codec in the same way, with a minimal client.
package conformance
