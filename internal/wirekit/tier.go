package wirekit

import dragoman "github.com/dragoman-go/dragoman"

// KnownTier reports whether OpenAI has a service tier of this name. Other words
// are those of one server, and go back only to its dialect.
func KnownTier(tier string) bool {
	switch tier {
	case "auto", "default", "flex", "scale", "priority", "fast", "ultrafast":
		return true
	default:
		return false
	}
}

// OpenAITier is the service tier to write for OpenAI.
func OpenAITier(tier string, rep *dragoman.Report) string {
	if tier == "standard_only" { // Anthropic's word
		rep.Add(dragoman.Lowered, dragoman.Info, "/service_tier", `"standard_only" written as "default"`)
		return "default"
	}
	return tier
}
