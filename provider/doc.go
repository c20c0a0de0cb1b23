// Package provider calls models over HTTP, in the dialect of each model API.
//
//	model := provider.MustOpen("anthropic/claude-opus-5-5") // or openai/…, gemini/…, ollama/…, sim/planner
//	resp, err := model.Generate(ctx, req)
//
//	for ev, err := range model.Stream(ctx, req) { … }
//
// A [Client] is one model, or one server with many models. It uses any codec over net/http. For
// each request it
//
//   - makes the conversation valid for the target (package history),
//   - encodes the request with a registry of its own,
//   - sends it and decodes the response,
//   - returns the losses of these steps in Response.Losses.
//
// A [Chain] is a list of models to try in order. [Open] opens either of them by name, with
// settings from the environment and one file.
//
// # Another server
//
// Environment variables set the server of a built-in provider:
//
//	OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=any      for openai/…
//	ANTHROPIC_BASE_URL=http://127.0.0.1:8080 ANTHROPIC_API_KEY=any   for anthropic/…
//	OLLAMA_HOST=127.0.0.1:8080                                       for ollama/…
//
// To name more servers, use a config file ([Parse] documents all fields). Set DRAGOMAN_CONFIG
// to its path, or read it with [Load]:
//
//	version: 1
//	providers:
//	  work: {type: compatible, base_url: "http://127.0.0.1:8080/v1"}   # opened as work/…
//
// "dragoman sim" starts a server to try this with.
//
// # Wire traffic and losses
//
// A logger at debug level gets every body that is sent and received, without credentials:
//
//	config, err := provider.Load("models.yaml") // or &provider.Config{}, without a file
//	config.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
//	model, err := config.Open("work/llama-9b")
//
// # Errors
//
// An error that the server returned is a [*dragoman.APIError] with its class. Other errors are
// of this package: [*TransportError], [*TimeoutError], [*SettingError]. Errors and logs never
// contain credentials.
package provider
