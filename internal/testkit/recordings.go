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

// Exchange is one recorded exchange over HTTP.
type Exchange struct {
	Repo, Path string
	I          int
	Status     int
	CT         string // the content type of the answer
	Req, Resp  *string
}

// ID names the exchange as the recordings' own index does.
func (x *Exchange) ID() string { return fmt.Sprintf("%s:%s#%d", x.Repo, x.Path, x.I) }

// Request returns the body that was sent, if it was recorded and is an object.
func (x *Exchange) Request() ([]byte, bool) {
	if x.Req == nil || !strings.HasPrefix(strings.TrimSpace(*x.Req), "{") {
		return nil, false
	}
	return []byte(*x.Req), true
}

// Response returns the body that came back; nil where none was recorded. What
// is no text was recorded in base64, with or without a mark.
func (x *Exchange) Response() ([]byte, error) {
	if x.Resp == nil {
		return nil, nil
	}
	if encoded, ok := strings.CutPrefix(*x.Resp, "\x00b64:"); ok || x.CT == "application/vnd.amazon.eventstream" {
		return base64.StdEncoding.DecodeString(encoded)
	}
	return []byte(*x.Resp), nil
}

// Shared returns a path in the folder beside the module with recorded traffic and official
// documents. They are not ours to copy: tests that need them skip where they are absent.
func Shared(t testing.TB, path ...string) string {
	t.Helper()
	root, err := RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root, "..", "shared"}, path...)...)
}

// Recordings returns every exchange of a file such as "openai_chat", or skips.
func Recordings(t testing.TB, file string) []Exchange {
	t.Helper()
	f, err := os.Open(Shared(t, "recorded", file+".jsonl.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no recorded traffic beside the module: %v", err)
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
