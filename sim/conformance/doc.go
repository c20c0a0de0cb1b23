// Package conformance holds tests for who writes a model over HTTP, or a wire
// language: anybody can run them, on a provider or a dialect of their own. The
// other side is always the simulator, over real HTTP.
//
//	func TestMyProvider(t *testing.T) {
//		conformance.Model{
//			Codec: openaichat.Codec{},
//			Open:  func(_ *testing.T, url string) dragoman.Model { return myprovider.New(url + "/v1") },
//		}.Run(t)
//	}
//
// [Model] tests a model: text, calls, parallel calls, freeform and namespaced
// tools, reasoning and images on their way back, structured output, errors of each
// class, cancellation, slow readers, and that no fault of a server makes it run
// what is not whole; each whole and streamed. [Dialect] tests a codec in the same
// way, with the plainest client that there is.
package conformance
