package catalog

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const zooDir = "../../../../shared/toolzoo"

// zooServers returns the tool objects of real servers, by server.
func zooServers(t testing.TB) (names []string, servers map[string][]json.RawMessage) {
	t.Helper()
	servers = map[string][]json.RawMessage{}
	files, err := filepath.Glob(filepath.Join(zooDir, "*.tools.json"))
	if err != nil || len(files) == 0 {
		t.Skip("the collection of real tools is not here")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil {
			servers[strings.TrimSuffix(filepath.Base(file), ".tools.json")] = list
			continue
		}
		var all map[string][]json.RawMessage
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for server, list := range all {
			servers[server] = list
		}
	}
	for name := range servers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, servers
}

func TestRealServersImportWithoutFalseAlarms(t *testing.T) {
	names, servers := zooServers(t)
	tools, repaired, dropped, blocked, asked := 0, 0, 0, 0, 0
	listed := 0
	var results []*Result
	for _, name := range names {
		listed += len(servers[name])
		res := Import(name, servers[name], Options{Prefix: true})
		results = append(results, &res)
		for _, d := range res.Diagnostics {
			switch d.Kind {
			case Dropped:
				dropped++
				t.Logf("dropped %s %s %s: %s", d.Server, d.Tool, d.Field, d.Reason)
			case Repaired:
				repaired++
				if !strings.Contains(d.Reason, "missing") {
					t.Logf("repaired %s %s: %s", d.Server, d.Tool, d.Reason)
				}
			default:
				t.Logf("%s %s %s: %s", d.Kind, d.Server, d.Tool, d.Reason)
			}
		}
	}
	count := func() {
		blocked, asked, tools = 0, 0, 0
		for _, res := range results {
			for i := range res.Tools {
				tools++
				tool := &res.Tools[i]
				if tool.Blocked() {
					blocked++
				} else if len(tool.Findings) > 0 {
					asked++
				}
			}
		}
	}
	count()
	alone, ask := blocked, asked
	CrossCheck(results...)
	count()
	for _, res := range results {
		for _, tool := range res.Tools {
			for _, f := range tool.Findings {
				t.Logf("%s %s: %s %s %s: %s", f.Server, f.Tool, f.Severity, f.Rule, f.Field, f.Excerpt)
			}
		}
	}
	t.Logf("%d tools of %d servers: %d imported, %d repairs, %d dropped; findings of servers alone: %d block, %d ask; all servers together: %d block, %d ask",
		listed, len(names), tools, repaired, dropped, alone, ask, blocked, asked)
	if tools != listed || dropped > 0 {
		t.Errorf("%d of %d tools were imported", tools, listed)
	}
	if blocked > 0 || asked*100 > tools {
		t.Errorf("%d blocked and %d asked of %d tools that are not known to be bad", blocked, asked, tools)
	}
}

// Functions of a benchmark, and the arguments that a registry lists without a schema.
func TestScannerLeavesRealDescriptionsAlone(t *testing.T) {
	texts := map[string]bool{}
	var collect func(v any)
	collect = func(v any) {
		switch v := v.(type) {
		case string:
			texts[v] = true
		case []any:
			for _, e := range v {
				collect(e)
			}
		case map[string]any:
			for _, e := range v {
				collect(e)
			}
		}
	}
	files, _ := filepath.Glob(filepath.Join(zooDir, "BFCL_*.json"))
	registry, _ := filepath.Glob(filepath.Join(zooDir, "docker*.json"))
	if len(files) == 0 || len(registry) == 0 {
		t.Skip("the collection of real tools is not here")
	}
	for _, file := range append(files, registry...) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(data))
		for {
			var v any
			if err := d.Decode(&v); err != nil {
				break
			}
			if m, ok := v.(map[string]any); ok && m["function"] != nil {
				v = m["function"] // not the questions of users
			}
			collect(v)
		}
	}
	found := 0
	for text := range texts {
		for _, f := range ScanText("s", "", text) {
			found++
			t.Logf("%s %s: %s", f.Severity, f.Rule, f.Excerpt)
		}
	}
	t.Logf("%d texts, %d findings", len(texts), found)
	if len(texts) < 1000 || found*1000 > len(texts) {
		t.Errorf("%d findings in %d texts", found, len(texts))
	}
}
