package provider

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/models"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/provider/internal/servers"
)

var updateDocs = flag.Bool("update-docs", false, "write the tables of ../docs/providers.md")

// TestTheDocumentListsWhatTheProgramKnows holds the tables of the document against
// the data.
func TestTheDocumentListsWhatTheProgramKnows(t *testing.T) {
	const path = "../docs/providers.md"
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(doc)
	for name, table := range map[string]string{"providers": providerTable(), "servers": serverTable(t), "models": modelTable()} {
		begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
		before, rest, found := strings.Cut(text, begin)
		old, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("the marks of %s are missing", name)
		}
		if old != table && !*updateDocs {
			t.Errorf("the table of %s is not what the program knows: run with -update-docs\n%s\nwant\n%s", name, old, table)
		}
		text = before + begin + table + end + after
	}
	if *updateDocs {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// What Parse knows is what it offers to who mistypes it.
func TestTheDocumentListsEveryFieldOfTheFile(t *testing.T) {
	doc, err := os.ReadFile("../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## The config file\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for what, file := range map[string]string{
		"the file":   `{"version": 1, "?": 1}`,
		"a provider": `{"version": 1, "providers": {"openai": {"?": 1}}}`,
		"a model":    `{"version": 1, "providers": {"openai": {"models": {"a": {"?": 1}}}}}`,
		"timeouts":   `{"version": 1, "providers": {"openai": {"timeouts": {"?": 1}}}}`,
		"failover":   `{"version": 1, "failover": {"?": 1}}`,
	} {
		_, err := Parse("f", []byte(file))
		_, fields, found := strings.Cut(fmt.Sprint(err), "known fields are ")
		if !found {
			t.Fatalf("%s: %v", what, err)
		}
		for field := range strings.SplitSeq(fields, ", ") {
			if !strings.Contains(section, "`"+field+"`") {
				t.Errorf("%s: %s is not described", what, field)
			}
		}
	}
}

func code(words ...string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

func providerTable() string {
	var b strings.Builder
	b.WriteString("| name | speaks | where | its place otherwise | credential |\n|---|---|---|---|---|\n")
	for _, p := range builtins() {
		where := cmp.Or(p.base, wire.Of(p.codec).Endpoint.BaseURL)
		switch {
		case where == nowhere:
			where = ""
		case p.AccessToken:
			where = "the location's"
		case where == "":
			where = "the region's"
		}
		if strings.HasPrefix(where, "http") {
			where = code(where)
		}
		keys := code(p.KeyEnv...)
		switch {
		case p.Signature != "":
			keys = code(p.TokenEnv) + ", or " + code(envAWSID, envAWSSecret)
		case p.TokenEnv != "":
			keys += ", or " + code(p.TokenEnv)
		case p.Keyless && keys != "":
			keys += ", or none"
		case p.Keyless:
			keys = "none, or `api_key_env`"
		}
		elsewhere := code(p.baseVariables()...)
		if p.base == nowhere {
			elsewhere = "`base_url`"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", code(p.Names...), p.codec.Dialect(), where, elsewhere, keys)
	}
	return b.String()
}

func tags(info extension.Info) string {
	var words []string
	for _, t := range info.Requires {
		words = append(words, code(string(t)))
	}
	for _, t := range info.Forbids {
		words = append(words, "not "+code(string(t)))
	}
	return strings.Join(words, ", ")
}

func serverTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| extension | on where | is | knobs |\n|---|---|---|---|\n")
	for _, e := range servers.All() {
		s, ok := e.(servers.Server)
		if !ok {
			continue
		}
		var knobs []string
		for _, k := range s.Knobs {
			values := k.Type
			if len(k.Choices) > 0 {
				values = strings.Join(k.Choices, ", ")
			}
			knobs = append(knobs, fmt.Sprintf("`%s` (%s): %s", k.Setting, values, k.Label))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, tags(s.Info()), s.Description, strings.Join(knobs, "<br>"))
	}
	return b.String()
}

func modelTable() string {
	var b strings.Builder
	b.WriteString("| provider | entries | reason | with a price |\n|---|---|---|---|\n")
	for _, name := range models.Default().Providers() {
		all, reason, priced := 0, 0, 0
		for _, e := range models.Default().Entries() {
			if e.Provider != name {
				continue
			}
			all++
			if e.Reasoning != nil && e.Reasoning.Supported {
				reason++
			}
			if e.Price != nil {
				priced++
			}
		}
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d |\n", name, all, reason, priced)
	}
	return b.String()
}
