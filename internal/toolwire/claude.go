package toolwire

import dragoman "github.com/dragoman-go/dragoman"

// ClaudeTTL is the cache lifetime that Anthropic and Bedrock know and that is
// nearest to a hint's; empty if the hint's is unknown.
func ClaudeTTL(h *dragoman.CacheHint) string {
	switch h.TTL {
	case "", "5m":
		return h.TTL
	case "1h", "12h", "24h", "30m":
		return "1h"
	default:
		return ""
	}
}

// ClaudeStrictLimits returns Anthropic's bounds for all strict schemas of a
// request together, its output schema included. Claude on Bedrock has the same.
func ClaudeStrictLimits() StrictLimits {
	return StrictLimits{Tools: 20, Optional: 24, Unions: 16}
}
