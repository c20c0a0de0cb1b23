package openaichat

// Internal names for external tests.

var LegacyFunctions = legacyFunctions
