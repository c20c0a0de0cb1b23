package gateway_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/gateway"
)

// Users build dashboards from the page, so it must list every metric and log field.
func TestG6_MetricsAndLogFieldsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := func(name string) bool { return strings.Contains(string(page), "`"+name+"`") }
	w := newWorld(t, "")
	if status, body := get(t, http.MethodPost, w.url+"/v1/chat/completions",
		`{"model":"anthropic/sim/echo","seed":1,"messages":[{"role":"user","content":"hi"}]}`); status != http.StatusOK {
		t.Fatal(body)
	}
	if status, body := get(t, http.MethodPost, w.url+"/v1/chat/completions", `{"model":"nobody"}`); status != http.StatusNotFound {
		t.Fatal(body)
	}
	w.wantLog(t, `"status":404`)
	_, text := get(t, http.MethodGet, w.url+"/metrics", "")
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)|[{,](\w+)="`).FindAllStringSubmatch(text, -1) {
		found[m[1]+m[2]] = true
	}
	if len(found) < 10 {
		t.Errorf("no metrics in\n%s", text)
	}
	delete(found, "le") // which is Prometheus's own
	for line := range strings.Lines(w.logged()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if fields["msg"] != "request" {
			continue
		}
		for name := range fields {
			found[name] = true
		}
	}
	for _, own := range []string{"time", "level", "msg"} { // slog's
		delete(found, own)
	}
	if !found["losses"] || !found["error"] || !found["input_tokens"] {
		t.Errorf("the log has only %v", found)
	}
	for name := range found {
		if !listed(name) {
			t.Errorf("docs/gateway.md does not list %s", name)
		}
	}
}

// docs/providers.md and docs/gateway.md have a table for each section of the config file, with
// a row for each field and no others.
func TestEveryFieldOfTheConfigFileIsDocumented(t *testing.T) {
	tables := map[string][]string{}
	for _, name := range []string{"providers", "gateway"} {
		page, err := os.ReadFile("../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for section, fields := range fieldTables(string(page)) {
			if name == "providers" && section == "the config file" {
				section = ""
			}
			tables[section] = fields
		}
	}
	sections := configSections(t, nil)
	if len(sections) < 12 {
		t.Errorf("found only the sections %v", slices.Sorted(maps.Keys(sections)))
	}
	for section, fields := range sections {
		got, ok := tables[section]
		if slices.Sort(got); !ok || !slices.Equal(got, fields) {
			t.Errorf("section %q: the page has the fields %v, the code has %v", section, got, fields)
		}
	}
	for section := range tables {
		if _, ok := sections[section]; !ok && (strings.HasPrefix(section, "gateway") || strings.HasPrefix(section, "providers") || section == "failover") {
			t.Errorf("the pages describe a section %q, which does not exist", section)
		}
	}
}

// fieldTables returns the names in the first column of the tables of a page whose first column
// is "field", by the heading above them, without backquotes and in lower case except for NAME.
func fieldTables(page string) map[string][]string {
	out := map[string][]string{}
	heading, inside := "", false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") {
			heading = strings.Trim(strings.TrimSpace(strings.TrimLeft(line, "#")), "`")
			if !strings.Contains(heading, ".") {
				heading = strings.ToLower(heading)
			}
		}
		first, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		switch {
		case !row || !strings.HasPrefix(line, "| "):
			inside = inside && strings.HasPrefix(line, "|---")
		case first == "field":
			inside = true
		case inside:
			for _, m := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(first, -1) {
				out[heading] = append(out[heading], m[1])
			}
		}
	}
	return out
}

// configSections returns the sorted fields of each section of the config file at and below a
// path. In a map with names of the user's choice, the name is NAME.
func configSections(t *testing.T, path []string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	fields := knownFields(t, path)
	if fields == nil {
		return out
	}
	out[strings.Join(path, ".")] = fields
	for _, field := range fields {
		below := append(slices.Clone(path), field)
		if knownFields(t, below) == nil {
			below = append(below, "NAME")
		}
		maps.Copy(out, configSections(t, below))
	}
	return out
}

var unknownField = regexp.MustCompile(`unknown field "\?".*\bare ([a-z0-9_]+(?:, [a-z0-9_]+)*)`)

// knownFields returns the fields that the error for an unknown field at a path lists, sorted;
// nil if the path is not a section.
func knownFields(t *testing.T, path []string) []string {
	t.Helper()
	text := `{"?": 1}`
	for _, name := range slices.Backward(path) {
		text = fmt.Sprintf(`{%q: %s}`, name, text)
	}
	_, err := gateway.Parse("f", []byte(text))
	m := unknownField.FindStringSubmatch(fmt.Sprint(err))
	if m == nil {
		return nil
	}
	fields := strings.Split(m[1], ", ")
	slices.Sort(fields)
	return fields
}

// The config files in the other reference pages are valid, too.
func TestConfigFilesOfThePagesAreValid(t *testing.T) {
	pages, err := filepath.Glob("../docs/clients/*.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, page := range append(pages, "../docs/providers.md", "../docs/command.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(m[1], "\nproviders:") && !strings.Contains(m[1], "\ngateway:") {
				continue // another kind of file
			}
			n++
			if _, err := gateway.Parse(page, []byte(m[1])); err != nil {
				t.Errorf("%s: %v\n%s", page, err, m[1])
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d config files", n)
	}
}

var yamlBlock = regexp.MustCompile("(?s)\n```yaml[^\n]*\n(.*?)```")
