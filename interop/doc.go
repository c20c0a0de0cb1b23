// Package interop converts single tool objects between wire formats: schemas,
// calls and results. A [Registry] belongs to one request: it holds the names and
// ids of its tools and accounts for losses. Each dialect owns the codec of its
// tool objects; package dialect/all composes a registry that knows all of them.
//
//	reg := all.Registry(interop.Options{Target: target, Limits: limits, Tools: req.Tools})
//	objs, report, err := reg.ConvertSchemas(tools, "anthropic.messages.tool")
//
// The way from one format to another, first that fits: the object is already
// in an accepted format and passes unchanged, byte for byte; a contributed
// adapter leads there directly; the canonical view, which every format can be
// read into and written from. Each conversion returns a report of its losses.
package interop
