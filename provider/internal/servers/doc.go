// Package servers has the extensions for servers that deviate from their dialect: what they
// refuse, what they require, and settings that only they have. Each extension is on only for
// requests with its tags.
//
// The facts about a server are data ([Server]); add your own the same way. Facts that differ
// from model to model are in package models. A user's settings override both.
//
//	set, err := extension.NewSet(append(servers.All(), myServer)...)
//
// The tags are those of [Tags]: the dialect ("dialect:openai.chat_completions"), the server
// ("server:deepseek") and the family of the model ("family:qwen").
package servers
