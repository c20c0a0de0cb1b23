package traffic

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

// AgentRequest is a request that an agent sent.
type AgentRequest struct {
	Name   string `json:"-"`
	Source Source `json:"-"`
	Path   string
	Body   json.RawMessage
}

// AgentRequests returns the recorded requests of agents, or skips the test.
func AgentRequests(t *testing.T) []AgentRequest {
	t.Helper()
	files, err := filepath.Glob(testkit.Shared(t, "recorded", "agents", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no recorded requests of agents")
	}
	var xs []AgentRequest
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		x := AgentRequest{Name: filepath.Base(file)}
		if err := json.Unmarshal(raw, &x); err != nil {
			t.Fatal(err)
		}
		for _, s := range Sources() {
			if strings.HasSuffix(x.Path, s.path) {
				x.Source = s
			}
		}
		if x.Source.Codec == nil {
			t.Fatalf("%s: no dialect for path %s", x.Name, x.Path)
		}
		xs = append(xs, x)
	}
	return xs
}
