// Package schema is about JSON Schema at the tool boundary: it writes schemas
// from Go types, validates arguments against them, lowers them to what one
// model API accepts, and says per tool what that cost.
//
//	params, err := schema.For[City]()                  // from a Go type
//	v, err := schema.Compile(params)                   // once per tool
//	target, ok := all.Profile("gemini.json_schema")    // package dialect/all
//	low, err := schema.Lower(params, target)           // per target; low.Schema is sent
//	args, err = low.FromWire(args)                     // the author's names and values again
//	args = v.OmitNulls(args)                           // where the tool was sent strict
//	err = v.Validate(args)                             // all violations at once
//
// It is not a place for wire objects (a tool's name, its description, where
// the strict flag goes): interop and the dialects own those. Nothing here
// does I/O: no $ref is ever fetched, from network or disk.
//
// # Lowering
//
// A [Profile] is data: the keywords, formats and rules of one surface. There
// is one for each surface of each API, and some for servers that speak OpenAI's
// dialect with rules of their own. The dialects own them; package dialect/all
// finds one by its name. [Lower] is
// pure, total and bounded. It returns the source's own bytes when nothing
// has to change, and otherwise reports each change with its place. The source
// stays the truth: arguments are validated against it, never against what was
// lowered.
//
// Where a target cannot say something in the author's words (a property's
// name, an enum of numbers, a map), [Lowered] translates arguments
// both ways. [Check] knows the rules of every target from
// their documents and shares nothing with the lowering.
//
// # Validation
//
// Arguments are validated as JSON Schema 2020-12 (older drafts where $schema
// names one) by github.com/santhosh-tekuri/jsonschema/v6 v6.0.3, which passes
// 100 % of the required tests of the official JSON-Schema-Test-Suite (commit
// of 2026-08-22) for 2020-12 (1299 tests) and for draft-07 (927 tests).
// Numbers are compared exactly, patterns are ECMA regular expressions with a
// time limit, and schemas and arguments that would be costly are refused
// before they are evaluated.
package schema
