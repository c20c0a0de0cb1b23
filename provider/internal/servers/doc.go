// Package servers has the extensions for servers that speak a dialect with an
// accent: what they refuse, what they want back, and the switches that only they
// have. Each is on where its tag is, and nowhere else.
//
// What is known of a server is data ([Server]); add your own the same way. What
// differs from model to model is in package models. A user's settings override both.
//
//	set, err := extension.NewSet(append(servers.All(), myServer)...)
//
// The tags are those of [Tags]: the dialect ("dialect:openai.chat_completions"), who
// serves ("server:deepseek") and the family of the model ("family:qwen").
package servers
