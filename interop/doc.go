// Package interop converts single tool objects between wire formats: schemas, calls and
// results. A [Registry] belongs to one request: it holds the names and ids of its tools and
// reports losses. Each dialect owns the codec of its tool objects; package dialect/all composes
// a registry that knows all of them.
//
//	reg := all.Registry(interop.Options{Target: target, Limits: limits, Tools: req.Tools})
//	objs, report, err := reg.ConvertSchemas(tools, "anthropic.messages.tool")
//
// A conversion takes the first path that applies:
//
//   - The object is already in an accepted format and passes through byte for byte.
//   - A contributed adapter converts it directly.
//   - The object is read into the canonical form and written from it, which every format
//     supports.
//
// Each conversion returns a report of its losses.
package interop
