// Package native tests which requests, responses, errors and streams pass through with their bytes
// unchanged, and which must be re-encoded because another reader could interpret them differently.
package native
