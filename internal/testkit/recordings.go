package testkit

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Exchange is one recorded HTTP exchange.
type Exchange struct {
	Repo, Path string
	I          int
	Status     int
	CT         string // content type of the response
	Req, Resp  *string
}

// ID returns the name of the exchange in the index of the recordings.
func (x *Exchange) ID() string { return fmt.Sprintf("%s:%s#%d", x.Repo, x.Path, x.I) }

// Request returns the request body, if it was recorded and is an object.
func (x *Exchange) Request() ([]byte, bool) {
	if x.Req == nil || !strings.HasPrefix(strings.TrimSpace(*x.Req), "{") {
		return nil, false
	}
	return []byte(*x.Req), true
}

// Response returns the response body, or nil if none was recorded. Binary bodies are
// recorded in Base64, with or without a marker.
func (x *Exchange) Response() ([]byte, error) {
	if x.Resp == nil {
		return nil, nil
	}
	if encoded, ok := strings.CutPrefix(*x.Resp, "\x00b64:"); ok || x.CT == "application/vnd.amazon.eventstream" {
		return base64.StdEncoding.DecodeString(encoded)
	}
	return []byte(*x.Resp), nil
}

// Shared returns a path in the shared folder next to the module, which has recorded traffic and
// official documents. They may not be copied into the module, so tests skip if they are absent.
func Shared(t testing.TB, path ...string) string {
	t.Helper()
	root, err := RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root, "..", "shared"}, path...)...)
}

// Recordings returns every exchange of a file such as "openai_chat". It skips the test if the file
// does not exist.
func Recordings(t testing.TB, file string) []Exchange {
	t.Helper()
	f, err := os.Open(Shared(t, "recorded", file+".jsonl.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no recorded traffic: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(gz)
	lines.Buffer(nil, 1<<28)
	var xs []Exchange
	for lines.Scan() {
		var x Exchange
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		xs = append(xs, x)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return xs
}
