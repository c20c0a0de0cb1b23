// Package archtest holds the tests that keep the module's rooms apart: imports
// point downward only, codecs are pure, library code has no hidden state and
// prints nothing.
package archtest

// room is one line of the map of the module.
type room struct {
	// path of the package, relative to the module; a last element * stands for
	// any one name.
	path string
	// only narrows what the room may import of this module; nil means every
	// room listed before it. An empty list means nothing.
	only []string
	// third lists the import paths, or prefixes of them that end in a slash, of
	// other modules that it may use.
	third []string
	// pure rooms do no I/O and use neither clock nor randomness.
	pure bool
	// clock lets a pure room measure time, to stop work that takes too long.
	clock bool
	// files allows the package os, for files and the environment. Printing and
	// exiting stay forbidden.
	files bool
	// program marks commands and examples: what libraries must not do, they may.
	program bool
}

const jsontext = "github.com/go-json-experiment/json/jsontext"

// rooms lists every package of the module from the bottom up, those that are
// still to be built included. A package may import the ones of earlier lines
// and no others; rooms of one line (dialect/*) do not import each other.
// A new package gets its line here, at the height where it belongs.
var rooms = []room{
	// Framing and ordered JSON: bytes only, nothing of ours.
	{path: "internal/jsonwire", only: []string{}, third: []string{jsontext}, pure: true},
	{path: "internal/sse", only: []string{}, pure: true},
	{path: "internal/ndjson", only: []string{}, pure: true},
	{path: "internal/eventstream", only: []string{}, pure: true},
	{path: "internal/framing", only: []string{"internal/eventstream", "internal/jsonwire", "internal/ndjson", "internal/sse"}, pure: true},
	{path: "internal/glob", only: []string{}, pure: true},
	{path: "internal/words", only: []string{}, pure: true},
	{path: "internal/fence", only: []string{}, pure: true},
	{path: "internal/bodies", only: []string{}, pure: true},
	{path: "internal/lazyctx", only: []string{}},
	{path: "internal/toolname", only: []string{}, pure: true},
	{path: "internal/visible", only: []string{}, pure: true},
	{path: "internal/modelgate", only: []string{}, pure: true},
	{path: "internal/plaintext", only: []string{}, pure: true},

	{path: "internal/codes", only: []string{}, pure: true},

	// The canonical model.
	{path: "", only: []string{"internal/codes", "internal/jsonwire", "internal/fence"}, third: []string{jsontext}, pure: true},

	{path: "targets", only: []string{""}, pure: true},
	{path: "internal/stopreason", only: []string{""}, pure: true},
	{path: "internal/toolformat", only: []string{""}, pure: true},
	{path: "internal/extra", only: []string{"", "internal/jsonwire"}, pure: true},
	{path: "internal/stream", only: []string{"", "internal/extra", "internal/jsonwire"}, pure: true},
	{path: "internal/linkrequest", only: []string{""}, pure: true},
	{path: "internal/schemarules", only: []string{}, pure: true},
	{path: "schema", only: []string{"", "internal/jsonwire", "internal/schemarules"}, third: []string{
		jsontext,
		"github.com/santhosh-tekuri/jsonschema/v6",
		"github.com/santhosh-tekuri/jsonschema/v6/",
		"github.com/invopop/jsonschema",
		"github.com/dlclark/regexp2",
		"github.com/pb33f/ordered-map/v2",
		"golang.org/x/text/",
	}, pure: true, clock: true},
	{path: "internal/toolwire", only: []string{"", "internal/codes", "internal/extra", "internal/jsonwire", "internal/schemarules", "schema", "targets"}, third: []string{jsontext}, pure: true},
	{path: "interop", third: []string{jsontext}, pure: true},
	{path: "dialect", third: []string{jsontext}, pure: true},
	{path: "internal/wire", only: []string{"", "dialect", "internal/framing", "internal/jsonwire"}, pure: true},
	{path: "internal/wirekit", third: []string{jsontext}, pure: true},
	{path: "internal/blockwire", third: []string{jsontext}, pure: true},
	{path: "dialect/*", third: []string{jsontext}, pure: true},
	{path: "internal/dialects", pure: true},
	{path: "dialect/all", pure: true},

	{path: "history", pure: true},
	{path: "internal/lark", only: []string{}, pure: true},
	{path: "tool", third: []string{"github.com/failsafe-go/failsafe-go/circuitbreaker", "github.com/go-json-experiment/json", "github.com/go-json-experiment/json/v1"}},
	{path: "tool/tooltest", only: []string{"", "dialect", "dialect/all", "internal/dialects", "schema", "tool"}},
	{path: "tool/shell", only: []string{"internal/glob"}, third: []string{"mvdan.cc/sh/v3/"}, pure: true},
	{path: "internal/filetree", only: []string{"internal/jsonwire", "internal/words"}, third: []string{"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/"}, pure: true},
	{path: "internal/capname", only: []string{"", "internal/codes", "internal/filetree", "internal/wirekit", "internal/words", "targets"}, pure: true},
	{path: "models", only: []string{"", "internal/codes", "internal/filetree", "internal/glob", "internal/words", "targets"}, pure: true},
	{path: "tool/policy", files: true, third: []string{"cel.dev/cel-go/", "golang.org/x/sys/unix", "golang.org/x/sys/windows"}},
	{path: "tool/workspace", only: []string{"", "internal/words", "tool", "tool/shell"}, files: true, third: []string{"github.com/landlock-lsm/go-landlock/", "github.com/rogpeppe/go-internal/diff", "golang.org/x/sys/unix"}},
	{path: "internal/secret", only: []string{}, pure: true},
	{path: "internal/serving"},
	{path: "internal/responsesapi", only: []string{"", "dialect", "dialect/openairesponses", "internal/jsonwire", "internal/serving"}},
	{path: "sim", files: true},
	{path: "internal/conformance", only: []string{"", "dialect", "history", "sim"}},
	{path: "provider/extension", only: []string{"", "history", "internal/jsonwire", "internal/words", "interop", "schema", "targets"}},
	{path: "internal/callcontext", only: []string{"provider/extension"}},
	{path: "internal/servers", only: []string{"", "provider/extension", "targets"}},
	{path: "internal/awssign", only: []string{}, third: []string{"github.com/aws/aws-sdk-go-v2/aws", "github.com/aws/aws-sdk-go-v2/aws/signer/v4"}},
	{path: "provider", files: true},
	{path: "internal/storelimits", only: []string{}, pure: true},
	{path: "session"},
	{path: "internal/storekit", only: []string{"internal/storelimits", "session", "tool"}},
	{path: "session/sqlite", only: []string{"internal/storekit", "internal/storelimits", "session", "tool"}, files: true, third: []string{"modernc.org/sqlite"}},
	{path: "session/postgres", only: []string{"internal/storekit", "internal/storelimits", "session", "tool"}, third: []string{"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/"}},
	{path: "session/sessiontest", only: []string{"", "internal/storelimits", "session", "tool"}},
	{path: "mcp", files: true, third: []string{"github.com/modelcontextprotocol/go-sdk/"}},
	{path: "agent"},
	{path: "agent/agenttest", only: []string{}},
	{path: "gateway/access", only: []string{"internal/glob"}, pure: true},
	{path: "internal/access", only: []string{"", "gateway/access", "internal/words"}, third: []string{"golang.org/x/time/rate"}},
	{path: "internal/recall"},
	{path: "gateway", files: true},
	{path: "console"},
	{path: "internal/sniff", only: []string{"", "dialect", "internal/dialects", "internal/framing", "internal/jsonwire", "internal/wire"}, pure: true},
	{path: "cmd/dragoman", program: true, third: []string{"golang.org/x/term", "golang.org/x/sys/unix", "github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/rogpeppe/go-internal/diff"}},
	{path: "examples/*", program: true},

	// What tests share: on top, so that nothing but tests can import it.
	{path: "internal/repotree", only: []string{}, files: true},
	{path: "internal/recordings", only: []string{"internal/repotree"}, files: true},
	{path: "internal/steady", only: []string{}, files: true, program: true},
	{path: "internal/child", only: []string{}, files: true, program: true},
	{path: "internal/gen", third: []string{"github.com/google/go-cmp/cmp", "pgregory.net/rapid"}},
	{path: "internal/codectest", only: []string{"", "dialect", "internal/codes", "internal/gen", "internal/jsonwire", "targets"}, files: true, third: []string{"github.com/google/go-cmp/cmp", "golang.org/x/tools/txtar", "pgregory.net/rapid"}},
	{path: "internal/rulecheck", only: []string{""}},
	{path: "internal/specs", only: []string{"internal/repotree"}, files: true, third: []string{"github.com/goccy/go-yaml", "github.com/santhosh-tekuri/jsonschema/v6"}},
	{path: "internal/emitcheck", only: []string{"", "internal/eventstream", "internal/specs"}, third: []string{jsontext, "github.com/santhosh-tekuri/jsonschema/v6"}},
	{path: "internal/emitcheck/checkproxy", only: []string{"internal/emitcheck"}, program: true},
	{path: "internal/strictupstream", only: []string{"", "internal/rulecheck"}},
	{path: "internal/strictupstream/strictproxy", only: []string{"internal/strictupstream"}, program: true},
	{path: "internal/benchdata", only: []string{"", "internal/jsonwire", "internal/eventstream", "internal/sse", "interop", "dialect"}},
	{path: "internal/storedgen", only: []string{"internal/repotree"}, program: true},
	{path: "internal/apicheck", only: []string{"internal/repotree"}, files: true},
	{path: "internal/doccheck", only: []string{"internal/repotree"}, files: true},
}
