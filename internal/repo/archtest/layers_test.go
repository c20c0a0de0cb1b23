// Package archtest tests the layering of the module: imports point downward only, codecs are
// pure, and library code has no hidden state and does not print.
package archtest

// layer describes one package, or a pattern of packages, and what it may import and do.
type layer struct {
	// path of the package, relative to the module; a last element * matches any
	// name.
	path string
	// only restricts the imports from this module; nil means every earlier layer, an
	// empty list means none.
	only []string
	// third lists import paths of other modules that the package may use, or
	// prefixes of them that end in a slash.
	third []string
	// pure packages do no I/O and use neither clock nor randomness.
	pure bool
	// clock allows a pure package to measure time, to stop work that takes too long.
	clock bool
	// files allows package os, for files and the environment. Printing and exiting
	// stay forbidden.
	files bool
	// stdout allows a package to speak a protocol over standard output.
	stdout bool
	// program marks commands and examples, which may do what libraries must not.
	program bool
	// tests marks a package that only tests import. It may do what a program does.
	tests bool
}

const jsontext = "github.com/go-json-experiment/json/jsontext"

// layers lists every package of the module from the bottom up, including planned ones. A
// package may import only packages of earlier lines; packages of one line (dialect/*) do not
// import each other. Add a line for a new package at the position where it belongs.
var layers = []layer{
	// Framing and ordered JSON: bytes only, no imports from this module.
	{path: "internal/jsonwire", only: []string{}, third: []string{jsontext}, pure: true},
	{path: "internal/framing/sse", only: []string{}, pure: true},
	{path: "internal/framing/ndjson", only: []string{}, pure: true},
	{path: "internal/framing/eventstream", only: []string{}, pure: true},
	{path: "internal/framing", only: []string{"internal/framing/eventstream", "internal/jsonwire", "internal/framing/ndjson", "internal/framing/sse"}, pure: true},
	{path: "internal/textkit", only: []string{}, pure: true},
	{path: "internal/lazyctx", only: []string{}},
	{path: "internal/text/toolname", only: []string{}, pure: true},

	{path: "internal/codec/codes", only: []string{}, pure: true},

	// The canonical model.
	{path: "", only: []string{"internal/codec/codes", "internal/jsonwire", "internal/textkit"}, third: []string{jsontext}, pure: true},

	{path: "internal/codec/dialectname", only: []string{""}, pure: true},
	{path: "targets", only: []string{"", "internal/codec/codes", "internal/textkit"}, pure: true},
	{path: "internal/codec/turnrules", only: []string{""}, pure: true},
	{path: "internal/codec/toolformat", only: []string{"", "internal/codec/dialectname"}, pure: true},
	{path: "internal/codec/extra", only: []string{"", "internal/jsonwire"}, pure: true},
	{path: "internal/codec/stream", only: []string{"", "internal/codec/extra", "internal/jsonwire", "internal/codec/codes"}, pure: true},
	{path: "internal/codec/schemarules", only: []string{}, pure: true},
	{path: "schema", only: []string{"", "internal/jsonwire", "internal/codec/schemarules", "internal/codec/codes"}, third: []string{
		jsontext,
		"github.com/santhosh-tekuri/jsonschema/v6",
		"github.com/santhosh-tekuri/jsonschema/v6/",
		"github.com/invopop/jsonschema",
		"github.com/dlclark/regexp2",
		"github.com/pb33f/ordered-map/v2",
		"golang.org/x/text/",
	}, pure: true, clock: true},
	{path: "internal/codec/toolwire", only: []string{"", "internal/codec/codes", "internal/codec/extra", "internal/jsonwire", "internal/codec/schemarules", "schema", "targets"}, third: []string{jsontext}, pure: true},
	{path: "interop", third: []string{jsontext}, pure: true},
	{path: "dialect", third: []string{jsontext}, pure: true},
	{path: "internal/codec/wire", only: []string{"", "dialect", "internal/framing", "internal/jsonwire"}, pure: true},
	{path: "internal/codec/wirekit", third: []string{jsontext}, pure: true},
	{path: "internal/codec/blockwire", third: []string{jsontext}, pure: true},
	{path: "dialect/*", third: []string{jsontext}, pure: true},
	{path: "internal/dialects", pure: true},
	{path: "dialect/all", pure: true},

	{path: "history", pure: true},
	{path: "internal/text/lark", only: []string{}, pure: true},
	{path: "tool", third: []string{"github.com/failsafe-go/failsafe-go/circuitbreaker", "github.com/go-json-experiment/json", "github.com/go-json-experiment/json/v1"}},
	{path: "tool/tooltest", only: []string{"", "dialect", "dialect/all", "internal/dialects", "schema", "targets", "tool", "internal/codec/codes"}},
	{path: "internal/text/shell", only: []string{"internal/textkit"}, third: []string{"mvdan.cc/sh/v3/"}, pure: true},
	{path: "internal/configfile", only: []string{"", "internal/codec/codes", "internal/codec/wirekit", "internal/jsonwire", "internal/textkit", "targets"}, third: []string{"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/"}, pure: true},
	{path: "models", only: []string{"", "internal/codec/codes", "internal/configfile", "internal/textkit", "targets", "internal/codec/dialectname"}, pure: true},
	{path: "tool/policy", files: true, third: []string{"cel.dev/cel-go/", "golang.org/x/sys/unix", "golang.org/x/sys/windows"}},
	{path: "tool/workspace", only: []string{"", "internal/textkit", "tool", "internal/text/shell", "internal/text/toolname"}, files: true, third: []string{"github.com/landlock-lsm/go-landlock/", "github.com/rogpeppe/go-internal/diff", "golang.org/x/sys/unix"}},
	{path: "internal/serving"},
	{path: "internal/serving/responsesapi", only: []string{"", "dialect", "dialect/openairesponses", "internal/jsonwire", "internal/serving", "internal/codec/codes"}},
	{path: "sim", files: true},
	{path: "sim/conformance", only: []string{"", "dialect", "history", "sim", "internal/codec/codes", "internal/codec/wire", "internal/dialects"}},
	{path: "provider/extension", only: []string{"", "history", "internal/jsonwire", "internal/textkit", "interop", "schema", "targets"}},
	{path: "internal/modelcall", only: []string{"", "dialect", "provider/extension", "targets"}},
	{path: "provider/internal/servers", only: []string{"", "provider/extension", "targets", "internal/codec/dialectname"}},
	{path: "provider/internal/awssign", only: []string{}, third: []string{"github.com/aws/aws-sdk-go-v2/aws", "github.com/aws/aws-sdk-go-v2/aws/signer/v4"}},
	{path: "provider", files: true},
	{path: "internal/storage", only: []string{}, pure: true},
	{path: "session"},
	{path: "internal/storage/storekit", only: []string{"", "internal/storage", "session", "tool"}},
	{path: "session/sqlite", only: []string{"internal/storage", "internal/storage/storekit", "session", "tool"}, files: true, third: []string{"modernc.org/sqlite"}},
	{path: "session/postgres", only: []string{"internal/storage", "internal/storage/storekit", "session", "tool"}, third: []string{"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/"}},
	{path: "session/sessiontest", only: []string{"", "internal/codec/codes", "internal/storage", "session", "tool", "internal/codec/dialectname"}},
	{path: "skill", only: []string{"", "internal/configfile", "internal/textkit", "tool"}, files: true},
	{path: "mcp/internal/rpc", only: []string{"internal/jsonwire", "internal/textkit"}},
	{path: "mcp/internal/stdio", only: []string{"internal/jsonwire", "internal/textkit", "mcp/internal/rpc"}, files: true, third: []string{"golang.org/x/sys/"}},
	{path: "mcp/internal/httpclient", only: []string{"internal/framing", "internal/framing/sse", "internal/jsonwire", "internal/textkit", "mcp/internal/rpc"}},
	{path: "mcp/internal/peer", only: []string{"internal/jsonwire", "internal/textkit", "mcp/internal/rpc"}},
	{path: "mcp/internal/catalog", pure: true},
	{path: "mcp/oauth", only: []string{"internal/textkit"}, files: true, third: []string{"github.com/go-json-experiment/json", jsontext, "github.com/modelcontextprotocol/go-sdk/oauthex", "golang.org/x/sys/windows"}},
	{path: "mcp", files: true},
	{path: "mcp/mcpserver", files: true, stdout: true, third: []string{"github.com/modelcontextprotocol/go-sdk/"}},
	{path: "mcp/internal/conformance/client", only: []string{"", "mcp", "mcp/oauth", "tool", "tool/policy"}, program: true},
	{path: "mcp/internal/conformance/realservers", only: []string{"", "mcp", "sim", "tool", "tool/policy"}, program: true, files: true},
	{path: "mcp/internal/conformance/server", only: []string{"", "mcp/mcpserver", "tool"}, program: true},
	{path: "agent"},
	{path: "agent/agenttest", only: []string{}},
	{path: "gateway/access", only: []string{"internal/textkit"}, pure: true},
	{path: "gateway/internal/access", only: []string{"", "gateway/access", "internal/dialects", "internal/textkit"}, third: []string{"golang.org/x/time/rate"}},
	{path: "gateway/internal/recall"},
	{path: "gateway/internal/mcpgate", only: []string{"", "internal/jsonwire", "internal/textkit", "mcp", "mcp/mcpserver", "tool", "tool/policy"}},
	{path: "gateway", files: true},
	{path: "console"},
	{path: "internal/serving/sniff", only: []string{"", "dialect", "internal/dialects", "internal/framing", "internal/jsonwire", "internal/codec/wire"}, pure: true},
	{path: "cmd/dragoman", program: true, third: []string{"golang.org/x/term", "golang.org/x/sys/unix", "github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/rogpeppe/go-internal/diff"}},
	{path: "examples/*", program: true},

	// Test helpers: at the top, so that only tests can import them.
	{path: "internal/testkit", only: []string{}, files: true, tests: true},
	{path: "internal/testkit/toolopt", only: []string{"", "tool"}, tests: true},
	{path: "internal/testkit/gen", third: []string{"github.com/google/go-cmp/cmp", "pgregory.net/rapid"}},
	{path: "internal/testkit/codectest", only: []string{"", "dialect", "internal/codec/codes", "internal/testkit/gen", "internal/jsonwire", "targets", "internal/codec/dialectname"}, files: true, third: []string{"github.com/google/go-cmp/cmp", "golang.org/x/tools/txtar", "pgregory.net/rapid"}},
	{path: "internal/oracle/rulecheck", only: []string{"", "internal/codec/dialectname"}},
	{path: "internal/oracle/mcpcheck", only: []string{"internal/testkit"}, files: true, third: []string{"github.com/santhosh-tekuri/jsonschema/v6"}, tests: true},
	{path: "internal/oracle/specs", only: []string{"internal/testkit"}, files: true, third: []string{"github.com/goccy/go-yaml", "github.com/santhosh-tekuri/jsonschema/v6"}},
	{path: "internal/oracle/emitcheck", only: []string{"", "internal/framing/eventstream", "internal/oracle/specs", "internal/codec/dialectname"}, third: []string{jsontext, "github.com/santhosh-tekuri/jsonschema/v6"}},
	{path: "internal/oracle/emitcheck/checkproxy", only: []string{"internal/oracle/emitcheck"}, program: true},
	{path: "internal/oracle/strictupstream", only: []string{"", "internal/oracle/rulecheck", "internal/codec/dialectname"}},
	{path: "internal/oracle/strictupstream/strictproxy", only: []string{"internal/oracle/strictupstream"}, program: true},
	{path: "internal/testkit/benchdata", only: []string{"", "internal/jsonwire", "internal/framing/eventstream", "internal/framing/sse", "interop", "dialect", "internal/codec/codes", "internal/codec/dialectname"}},
	{path: "internal/testkit/crosstest", only: []string{"", "dialect", "dialect/all", "internal/codec/codes", "internal/dialects", "internal/framing/eventstream", "interop", "schema", "targets", "internal/codec/dialectname"}, third: []string{"pgregory.net/rapid"}},
	{path: "internal/testkit/traffic", files: true, tests: true},
	{path: "dialect/internal/*", only: []string{}, pure: true}, // tests of several dialects
	{path: "internal/repo/storedgen", only: []string{"internal/testkit"}, program: true},
	{path: "internal/repo/release", only: []string{"internal/testkit"}, files: true, program: true},
	{path: "internal/repo/apicheck", only: []string{"internal/testkit"}, files: true},
	{path: "internal/repo/doccheck", only: []string{"internal/testkit"}, files: true},
	{path: "internal/repo/doctest", only: []string{}, files: true},
}
