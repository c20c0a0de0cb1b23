// Package catalog imports the tools of MCP servers: it turns the raw objects of tools/list into
// definitions for models, reports what is wrong with each, scans their texts for attacks, and
// compares definitions with accepted ones.
//
//	res := catalog.Import("files", raw, catalog.Options{})
//	for _, t := range res.Tools {
//		fmt.Println(t.Public, t.Blocked(), t.Fingerprint())
//	}
//
// Everything that a server sends is untrusted. The package does no I/O, fetches no reference,
// has bounded cost, and returns the same result for the same input.
package catalog
