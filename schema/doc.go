// Package schema handles JSON Schema for tools: it generates schemas from Go types, validates
// arguments, lowers schemas to what one model API accepts, and reports the losses of that for
// each tool.
//
//	params, err := schema.For[City]()                  // from a Go type
//	v, err := schema.Compile(params)                   // once per tool
//	target, ok := all.Profile("gemini.json_schema")    // package dialect/all
//	low, err := schema.Lower(params, target)           // per target; low.Schema is sent
//	args, err = low.FromWire(args)                     // back to the author's names and values
//	args = v.OmitNulls(args)                           // if the tool was sent strict
//	err = v.Validate(args)                             // all violations at once
//
// Wire objects (the name of a tool, its description, the position of the strict flag) belong to
// interop and the dialects. The package does no I/O: no $ref is ever fetched, from network or
// disk.
//
// # Lowering
//
// A [Profile] is data: the keywords, formats and rules of one API surface. There is one for
// each surface of each API, and some for OpenAI-compatible servers with their own rules. The
// dialects own the profiles; package dialect/all finds one by its name.
//
// [Lower] has no side effects, handles every input, and has bounded cost. It returns the
// source's own bytes if nothing has to change, and otherwise reports each change with its
// position. The source schema stays authoritative: arguments are validated against it, never
// against the lowered one.
//
// If a target cannot express something in the author's form (a property name, an enum of
// numbers, a map), [Lowered] translates arguments in both directions. [Check] implements the
// rules of every target from their documentation and shares no code with the lowering.
//
// # Validation
//
// Arguments are validated as JSON Schema 2020-12 (or an older draft that $schema names) by
// github.com/santhosh-tekuri/jsonschema/v6 v6.0.3, which passes 100 % of the required tests of
// the official JSON-Schema-Test-Suite (commit of 2026-08-22) for 2020-12 (1299 tests) and for
// draft-07 (927 tests). Numbers are compared exactly, patterns are ECMA regular expressions
// with a time limit, and schemas and arguments that would be too costly are refused before they
// are evaluated.
package schema
