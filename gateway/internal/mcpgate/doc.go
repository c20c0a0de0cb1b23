// Package mcpgate serves many MCP servers behind one endpoint: which servers and tools each
// virtual key sees, policies, approvals, limits and records. It bridges the revisions of the
// protocol: package mcp speaks to the servers, package mcpserver to the clients.
//
// Each key has a front of its own, so that lists, sessions and open questions of one key never
// reach another (pitfall K33). A front has one endpoint for all servers, and one for each.
package mcpgate
