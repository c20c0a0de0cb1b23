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
// # Another server
//
// The environment says where a built-in provider is:
//
//	OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=any      for openai/…
//	ANTHROPIC_BASE_URL=http://127.0.0.1:8080 ANTHROPIC_API_KEY=any   for anthropic/…
//	OLLAMA_HOST=127.0.0.1:8080                                       for ollama/…
//
// and a file, which DRAGOMAN_CONFIG names or [Load] reads, gives names to as many
// servers as you like ([Parse] has all of it):
//
//	version: 1
//	providers:
//	  work: {type: compatible, base_url: "http://127.0.0.1:8080/v1"}   # opened as work/…
//
// "dragoman sim" is a server to try that on.
//
// # The wire, and what was lost
//
// A logger at debug level gets every body that is sent and received, without
// credentials:
//
//	config, err := provider.Load("models.yaml") // or &provider.Config{}, without a file
//	config.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
//	model, err := config.Open("work/llama-9b")
//
// # Errors
//
// Errors are what the server said, as a [*dragoman.APIError] with its class, or
// one of this package's: [*TransportError], [*TimeoutError], [*SettingError].
// No credential is in any of them, nor in a log.
package provider
