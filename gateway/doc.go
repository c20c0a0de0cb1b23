// Package gateway is a server through which any client that speaks OpenAI Chat, OpenAI
// Responses, Anthropic Messages, Gemini or Ollama reaches any model, tools, reasoning
// and streams intact.
//
//	config, err := gateway.Load("gateway.yaml")
//	g, err := gateway.New(config, gateway.Options{Log: slog.Default()})
//	l, err := net.Listen("tcp", config.Address())
//	err = g.Serve(ctx, l, 0)
//
// [Gateway.Serve] refuses to be an open relay, and drains. A [Gateway] is an [http.Handler],
// too, for programs with a server of their own, which then sees to that. Without a config it serves the simulator's models.
// docs/gateway.md says how clients are pointed at it; "dragoman serve" is the command.
//
// # The way of a request
//
// Who asks is known by a virtual key (package access), what is asked for by the name of
// a model, which a [Route] leads to one model or several that stand in for each other.
// Where both ends speak one dialect and nobody has anything to change, the body is sent
// on as it came, but for the model's name, and the answer comes back byte for byte, the
// server's own refusals too. Else the request is read, its conversation made valid for
// the model, and the answer told in the client's dialect. What could not be kept is in
// the header "X-Dragoman-Losses", as far as it is known when the answer begins, and in the log.
//
// Errors come in the client's dialect, before the first byte with a status and behind it
// within the stream, never as a silent end. Nothing is asked again once a byte of the
// answer has reached the client.
//
// Clients forget: package recall puts back what a model must see again.
package gateway
