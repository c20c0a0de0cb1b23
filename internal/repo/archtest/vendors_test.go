package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/testkit"
)

// mayNameDialects lists the exceptions to the rule that each vendor has one package,
// dialect/<vendor>, with the reason of each. Other packages read the descriptor of a dialect
// (internal/codec/wire); they neither name a dialect nor import its package.
var mayNameDialects = map[string]string{
	"internal/codec/dialectname": "declares the names",
	"internal/dialects":          "the registration list",
	"internal/codec/toolformat":  "declares the names of the formats of tool objects",

	// Programs and data that a user reads.
	"examples/*":                                "examples show the packages that users import",
	"models/capabilities.go":                    "facts about models are data, some of them by dialect",
	"provider/internal/servers/table.go":        "facts about servers are data: which dialect each speaks",
	"internal/serving/responsesapi":             "the server side of the Responses API, which the gateway and the simulator share",
	"internal/codec/wirekit/openai.go":          "the fields that both OpenAI dialects have, for conversion between them",
	"internal/codec/wirekit/chat_signatures.go": "signatures of other dialects, carried through Chat calls",
	"internal/codec/wirekit/references.go":      "wirekit is below the dialects: one refuses references that another would resolve",

	// Oracles must not share code with what they check.
	"internal/oracle/strictupstream": "an oracle",
	"internal/oracle/emitcheck":      "an oracle",
	"internal/oracle/rulecheck":      "an oracle",

	// Only tests import these.
	"internal/testkit/benchdata":            "data of benchmarks",
	"internal/testkit/crosstest/streams.go": "streams of each dialect",
	"internal/testkit/traffic/sources.go":   "recordings of each dialect",
	"internal/testkit/gen":                  "generators of test data",
	"internal/testkit/codectest/draw.go":    "a part that other codecs do not know",
	"session/sessiontest/sessions.go":       "tests of session stores",
}

func vendorsStayAtHome(s *source, report reporter) {
	if ok, _ := path.Match("dialect/*", s.path); ok {
		return
	}
	for _, f := range s.files {
		file := path.Join(s.path, filepath.Base(s.fset.Position(f.Pos()).Filename))
		if mayName(s.path, file) {
			continue
		}
		visitDialects(s, f, func(pos token.Position, what string) {
			report(pos, "%s %s: read the descriptor of the dialect instead (internal/codec/wire), or see mayNameDialects in internal/repo/archtest", title(s.path), what)
		})
	}
}

func mayName(pkg, file string) bool {
	for pattern := range mayNameDialects {
		for _, name := range []string{pkg, file} {
			if ok, _ := path.Match(pattern, name); ok {
				return true
			}
		}
	}
	return false
}

// visitDialects calls visit for each import of a dialect's package, each use of a
// constant and each string that name a dialect.
func visitDialects(s *source, f *ast.File, visit func(pos token.Position, what string)) {
	for _, spec := range f.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		if pkg, ok := ours(imp); ok && strings.HasPrefix(pkg, "dialect/") && pkg != "dialect/all" {
			visit(s.fset.Position(spec.Pos()), "imports "+pkg)
		}
	}
	s.selectors(f, func(pos token.Position, pkg, name string) {
		if pkg == testkit.Module+"/internal/codec/dialectname" {
			visit(pos, "uses dialectname."+name)
		}
	})
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		text, _ := strconv.Unquote(lit.Value)
		for _, codec := range dialects.All() {
			if text == string(codec.Dialect()) {
				visit(s.fset.Position(lit.Pos()), "names "+text)
			}
		}
		return true
	})
}

// An unneeded entry of the list would hide the next mistake.
func TestPackagesThatMayNameDialectsDo(t *testing.T) {
	used := map[string]bool{}
	for _, s := range tree(t) {
		for _, f := range s.files {
			file := path.Join(s.path, filepath.Base(s.fset.Position(f.Pos()).Filename))
			visitDialects(s, f, func(token.Position, string) {
				for pattern := range mayNameDialects {
					ok, _ := path.Match(pattern, s.path)
					also, _ := path.Match(pattern, file)
					used[pattern] = used[pattern] || ok || also
				}
			})
		}
	}
	for pattern := range mayNameDialects {
		if !used[pattern] {
			t.Errorf("%q names no dialect: remove it from mayNameDialects", pattern)
		}
	}
}

// Other packages find a dialect only through its descriptor.
func TestEveryDialectIsDescribed(t *testing.T) {
	for _, codec := range dialects.All() {
		w := dialects.WireOf(codec.Dialect())
		switch {
		case len(w.Names) == 0, w.Body.Messages == "", w.Body.Tools == "", w.Endpoint.Path == "", w.Stream.Framing == nil, len(w.Stream.Usage) == 0:
			t.Errorf("%s: the descriptor lacks a required field", codec.Dialect())
		case !w.Stream.End.Named() && len(w.Stream.End.Field) == 0:
			t.Errorf("%s: the descriptor has no end of stream", codec.Dialect())
		case len(w.Serving.Routes) == 0, w.Simulator.Text.Field == "", len(w.Signs.Request[0]) == 0:
			t.Errorf("%s: the simulator or the command line cannot find it", codec.Dialect())
		}
		if _, ok := codec.(interface{ ToolCodec() toolwire.Codec }); !ok {
			t.Errorf("%s: no ToolCodec: registries do not know its tool objects", codec.Dialect())
		}
	}
}

// A vendor that others barely know is mentioned in few files outside its package: in facts
// that are data, in oracles, and in the support of tests.
var maxMentions = map[string]int{"bedrock": 15, "cohere": 11}

func TestVendorsAreMentionedInFewFiles(t *testing.T) {
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	pkgs, err := testkit.RepoPackages(root)
	if err != nil {
		t.Fatal(err)
	}
	for vendor, most := range maxMentions {
		var files []string
		home := 0
		for _, p := range pkgs {
			for _, name := range p.Files {
				file := path.Join(p.Path, name)
				src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case !strings.Contains(strings.ToLower(string(src)), vendor):
				case p.Path == "dialect/"+vendor:
					home++
				case !strings.HasPrefix(p.Path, "examples/"):
					files = append(files, file)
				}
			}
		}
		if home == 0 {
			t.Errorf("no file of dialect/%s mentions %[1]s", vendor)
		}
		if len(files) > most {
			t.Errorf("%d files outside dialect/%s mention %[2]s, at most %d may: %s", len(files), vendor, most, strings.Join(files, " "))
		}
	}
}
