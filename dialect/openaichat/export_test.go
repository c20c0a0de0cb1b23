package openaichat

// Names for the tests of the package.

var LegacyFunctions = legacyFunctions
