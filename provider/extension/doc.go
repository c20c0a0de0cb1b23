// Package extension adapts requests and answers to one server, or to all of them,
// without a change in the core.
//
// An [Extension] has a name and says by tags when it is on. All that it can do
// beside that is optional, and found by assertion: each hook is an interface with
// one method.
//
//	type Thinker struct{}
//
//	func (Thinker) Info() extension.Info {
//		return extension.Info{Name: "acme.think", Requires: []extension.Tag{"acme"}}
//	}
//
//	func (Thinker) Decorate(_ context.Context, x *extension.Exchange) error {
//		return x.Payload.Set("think", true)
//	}
//
// # When an extension is on
//
// Tags are words such as "dialect:openai.chat_completions", "server:vllm" or
// "model:qwen". They come with each request: from the provider, from tools, and
// from the extensions that are on. An extension is on where all the tags that it
// requires are there and none that it forbids. [Resolve] finds out which are.
//
// # The way of a request
//
// For each request there is one [Exchange], which all its extensions share. They
// are called in the order of their registration, in each of these steps:
//
//   - [Initializer], once, before the first of them;
//   - [Preparer], before the conversation is encoded;
//   - [Contributor], when the request's registry of formats is composed;
//   - [Mapper], when the conversation has its native form, and again when the
//     answer is complete;
//   - [Decorator], when the native payload is there and is not yet sent;
//   - [ChunkReader], for every native chunk of the answer, before its events are
//     handed out; a whole answer is one chunk;
//   - [Finisher], when the answer is complete.
//
// Beside that way, an extension may say what settings it takes ([Configurable]),
// and offer actions on sessions ([Actor]). An extension that is off runs none of its
// hooks.
package extension
