// Package provider turns the wire languages into models that a program can call
// over HTTP.
//
//	model := provider.MustOpen("anthropic/claude-opus-5-5") // or openai/…, gemini/…, ollama/…, sim/planner
//	resp, err := model.Generate(ctx, req)
//
//	for ev, err := range model.Stream(ctx, req) { … }
//
// A [Client] is one model, or one server with many: any codec, over net/http.
// What a request goes through: its conversation is made valid for the target
// (package history), it is encoded with a registry that is its own, sent, and
// the answer decoded; what was lost on the way is in Response.Losses.
//
// A [Chain] is several models that stand in for each other. [Open] makes either
// of a name, with settings from the environment and one file.
//
// Errors are what the server said, as a [*dragoman.APIError] with its class, or
// one of this package's: [*TransportError], [*TimeoutError], [*SettingError].
// No credential is in any of them, nor in a log.
package provider
