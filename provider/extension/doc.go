// Package extension adapts requests and responses to one server, or to all of them, without a
// change in the core.
//
// An [Extension] has a name and the tags that determine when it is on. Everything else is in
// optional methods, the hooks: [Extension] lists them.
//
//	type Thinker struct{}
//
//	func (Thinker) Info() extension.Info {
//		return extension.Info{Name: "acme.think", Requires: []extension.Tag{"server:acme"}}
//	}
//
//	func (Thinker) Decorate(_ context.Context, x *extension.Exchange) error {
//		return x.Payload.Set("think", true)
//	}
//
// # When an extension is on
//
// Tags are words such as "dialect:openai.chat_completions", "server:vllm" or "family:qwen".
// Each request has tags from several sources:
//
//   - A provider has the tag "server:" with its own name, and with that of its type: the
//     provider work of type vllm has "server:work" and "server:vllm".
//   - Settings and config files add their own tags.
//   - Each tool adds "tool:" with its name.
//   - An extension that is on adds tags. With the hook Tags, they can depend on its settings,
//     the model and the tools.
//
// An extension is on if all tags that it requires are present and none that it forbids.
// [Set.Resolve] computes the result. The hooks of an extension that is off are not called,
// whatever its settings.
//
// # Using one
//
// Add extensions to a config, or to a single client with Client.Extensions:
//
//	config := &provider.Config{
//		Extensions: []extension.Extension{Thinker{}},
//		Providers: map[string]provider.Settings{"acme": {
//			Type: "compatible", BaseURL: "http://127.0.0.1:8080/v1",
//			Extensions: map[string]json.RawMessage{"acme.think": json.RawMessage(`{"deep": true}`)},
//		}},
//	}
//	model, err := config.Open("acme/large")
//
// With a config file, pass them to provider.Load or provider.Default; the file may have their
// settings. A hook reads its settings with [Exchange.Config]. The example of package provider
// uses every feature of an extension.
//
// # The path of a request
//
// For each request there is one [Exchange], which all its extensions share. They are called in
// the order of their registration, in each of these steps:
//
//   - Initialize, once, before the first of them;
//   - Prepare, before the conversation is encoded;
//   - Contribute, when the request's registry of formats is composed;
//   - ToNative, after the conversation is encoded;
//   - Decorate, when the native payload is complete, before it is sent;
//   - ReadChunk, for every native chunk of the response, before its events are sent; a complete
//     response is one chunk;
//   - FromNative, when the response is complete;
//   - Finish, after that.
//
// An extension may also describe its settings (ConfigSchema) and how to display them
// (Elements), and offer actions on sessions (Actions).
package extension
