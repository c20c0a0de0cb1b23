// Package gateway is an HTTP server that connects clients of OpenAI Chat, OpenAI Responses,
// Anthropic Messages, Gemini or Ollama to any model, with tools, reasoning and streams intact.
//
//	config, err := gateway.Load("gateway.yaml")
//	g, err := gateway.New(config, gateway.Options{Log: slog.Default()})
//	l, err := net.Listen("tcp", config.Address())
//	err = g.Serve(ctx, l, 0)
//
// [Gateway.Serve] refuses to be an open relay, and drains open requests when it stops. A
// [Gateway] is also an [http.Handler] for programs with their own server, which must then do
// both themselves. Without a config it serves the models of the simulator. docs/gateway.md
// shows how to configure clients; the command is "dragoman serve".
//
// # How a request is handled
//
// A virtual key (package access) identifies the client. A [Route] maps the requested model name
// to one model, or to several with failover.
//
// If client and upstream use the same dialect and nothing has to change, the gateway passes the
// body through, except for the model name, and returns the response byte for byte, errors of
// the upstream included. Otherwise it decodes the request, makes the conversation valid for the
// model, and re-encodes the response in the client's dialect. Losses are reported in the header
// "X-Dragoman-Losses", if they are known when the response begins, and in the log.
//
// Errors are in the client's dialect: with a status before the first byte of the response,
// within the stream after it. A stream never ends silently. The gateway does not retry once a
// byte of the response was sent to the client.
//
// Some clients drop state that a model needs in later requests, such as signed reasoning. The
// gateway stores it and adds it to the requests again.
package gateway
