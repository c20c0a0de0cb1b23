package dragoman_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
)

// pinned is one line of testdata/stored/fingerprints.jsonl: a value that
// internal/testkit/gen generated from a fixed seed, and its fingerprint.
type pinned struct {
	Kind        string               `json:"kind"`
	Fingerprint dragoman.Fingerprint `json:"fingerprint"`
	Stored      json.RawMessage      `json:"stored"`
}

// fingerprinted is a pointer to a value that has a fingerprint.
type fingerprinted interface{ Fingerprint() dragoman.Fingerprint }

// pinnedKinds lists the types with a fingerprint, with functions that return a
// random value for a seed, and an empty value.
var pinnedKinds = []struct {
	name string
	make func(seed int) fingerprinted
	zero func() fingerprinted
}{
	{"message", func(seed int) fingerprinted { return ptr(gen.Options{}.Message().Example(seed)) }, func() fingerprinted { return new(dragoman.Message) }},
	{"tool", func(seed int) fingerprinted { return ptr(firstTool(seed)) }, func() fingerprinted { return new(dragoman.ToolSpec) }},
	{"request", func(seed int) fingerprinted { return gen.Options{}.Request().Example(seed) }, func() fingerprinted { return new(dragoman.Request) }},
	{"response", func(seed int) fingerprinted { return gen.Options{}.Response().Example(seed) }, func() fingerprinted { return new(dragoman.Response) }},
}

// firstTool returns the first tool of a random list, or an empty one.
func firstTool(seed int) dragoman.ToolSpec {
	for _, tool := range (gen.Options{}).Tools().Example(seed) {
		return tool
	}
	return dragoman.ToolSpec{}
}

// Sessions store fingerprints with native bytes. If the fingerprint of a value
// changes between two versions, those bytes are lost, so a new field must not
// change the fingerprint of values that do not set it. Use the tag
// `hash:"ifset"`; see internal/repo/storedgen.
func TestFingerprintsAndStoredBytesArePinned(t *testing.T) {
	golden := filepath.Join("testdata", "stored", "fingerprints.jsonl")
	if _, err := os.Stat(golden); *update && errors.Is(err, fs.ErrNotExist) {
		writePinned(t, golden) // only if the file is missing: pinned values do not change
	}
	file, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(file))
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		var want pinned
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		for _, kind := range pinnedKinds {
			if kind.name != want.Kind {
				continue
			}
			count[want.Kind]++
			v := kind.zero()
			if err := json.Unmarshal(want.Stored, v); err != nil {
				t.Errorf("line %d: the %s no longer loads: %v", n, want.Kind, err)
			} else if got := v.Fingerprint(); got != want.Fingerprint {
				t.Errorf("line %d: the fingerprint of the %s is %v, want %v", n, want.Kind, got, want.Fingerprint)
			}
			if stored := storedBytes(t, v); !bytes.Equal(stored, want.Stored) {
				t.Errorf("line %d: the %s is stored in other bytes (-golden +now):\n%s", n, want.Kind, gen.Diff(string(want.Stored), string(stored)))
			}
		}
	}
	for _, kind := range pinnedKinds {
		if count[kind.name] < 20 {
			t.Errorf("%d values of kind %s are pinned, want 20 or more", count[kind.name], kind.name)
		}
	}
}

// storedBytes stores v without the escapes that json.Marshal adds.
func storedBytes(t *testing.T, v any) []byte {
	t.Helper()
	data, err := v.(json.Marshaler).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// writePinned writes the empty value of each kind and 24 random ones.
func writePinned(t *testing.T, path string) {
	t.Helper()
	var out bytes.Buffer
	for _, kind := range pinnedKinds {
		for seed := range 25 {
			v := kind.zero()
			if seed > 0 {
				v = kind.make(seed)
			}
			out.WriteString(`{"kind":"` + kind.name + `","fingerprint":"` + v.Fingerprint().String() + `","stored":`)
			out.Write(storedBytes(t, v))
			out.WriteString("}\n")
		}
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
