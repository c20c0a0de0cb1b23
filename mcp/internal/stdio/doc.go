// Package stdio connects to MCP servers that speak over streams: programs that it starts, and
// pairs of pipes. A message is one line of JSON.
package stdio
