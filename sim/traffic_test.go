package sim_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/sim"
)

// exchange posts a body with credentials in many places and returns the response.
func exchange(t *testing.T, via http.RoundTripper, url, body, key string) (string, http.Header, error) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("authorization", "Bearer "+key)
	r.Header.Set("x-api-key", key)
	r.Header.Set("x-goog-api-key", "goog-"+key)
	r.Header.Set("cookie", "session=cookie-"+key)
	r.Header.Set("x-note", "with "+key)
	r.Header["api-key"] = []string{"lower-" + key} // some clients write it in lower case
	resp, err := via.RoundTrip(r)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return string(raw), resp.Header, err
}

func record(t *testing.T, next http.RoundTripper) (*sim.Recorder, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.traffic")
	rec, err := sim.Record(path, next)
	if err != nil {
		t.Fatal(err)
	}
	return rec, path
}

func TestZ3_RecordAndReplayWithoutCredentials(t *testing.T) {
	const key = "sk-very-secret-0123456789"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		w.Header().Set("set-cookie", "id=cookie-of-the-server")
		w.Header().Set("x-seen", r.Header.Get("x-api-key"))
		_, _ = w.Write(append([]byte("you sent\r\n"), raw...))
	}))
	defer server.Close()
	rec, path := record(t, nil)
	url := server.URL + "/v1?key=" + key + "&alt=sse"
	body := `{"a":1,"note":"my key is ` + key + `"}`
	first, _, err := exchange(t, rec, url, body, key)
	if err != nil || !strings.Contains(first, key) {
		t.Fatalf("the recorder changed the response: %s %v", first, err)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || bytes.Contains(raw, []byte(key)) || bytes.Contains(raw, []byte("cookie-of")) || !bytes.Contains(raw, []byte("REDACTED")) {
		t.Fatalf("%v\n%s", err, raw)
	}
	if info, _ := os.Stat(path); info.Mode().Perm()&0o077 != 0 {
		t.Errorf("other users can read the file: %v", info.Mode())
	}

	server.Close() // the server is gone
	play, err := sim.Replay(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := play.Unplayed(); len(n) != 1 || strings.Contains(n[0], key) {
		t.Errorf("%q", n)
	}
	// With another key, and with fields in another order.
	other := "sk-of-another-user-42"
	again, header, err := exchange(t, play, strings.Replace(url, key, other, 1), `{"note":"my key is `+other+`", "a": 1}`, other)
	if want := strings.ReplaceAll(first, key, "REDACTED"); err != nil || again != want || header.Get("x-seen") != "REDACTED" {
		t.Errorf("%q, want %q, %v %v", again, want, header, err)
	}
	if len(play.Unplayed()) != 0 {
		t.Error("an exchange was not played")
	}
}

func TestZ3_MismatchShowsNearest(t *testing.T) {
	answers := map[string]string{"/a": "one", "/b": "two"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, answers[r.URL.Path])
	}))
	defer server.Close()
	rec, path := record(t, nil)
	const body = `{"model":"m","messages":[{"role":"user","content":"Hello"},{"role":"user","content":"there"}],"n":1}`
	for _, p := range []string{"/a", "/b", "/a"} {
		if _, _, err := exchange(t, rec, server.URL+p, body, "key-0123456789"); err != nil {
			t.Fatal(err)
		}
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	play, err := sim.Replay(path)
	if err != nil {
		t.Fatal(err)
	}
	miss := func(p, body string) *sim.MismatchError {
		t.Helper()
		_, _, err := exchange(t, play, server.URL+p, body, "key-0123456789")
		var e *sim.MismatchError
		if !errors.As(err, &e) || !errors.Is(err, sim.ErrNotRecorded) {
			t.Fatalf("%s %s: %v", p, body, err)
		}
		return e
	}
	e := miss("/b", `{"model":"m","messages":[{"role":"user","content":"Hullo"},{"role":"user","content":"there"}],"x":2}`)
	text := e.Error()
	for _, want := range []string{"exchange 2", "/b", `at /messages/0/content: recorded "Hello", sent "Hullo"`, "at /n: recorded 1, sent nothing", "at /x: recorded nothing, sent 2"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if e := miss("/c", body); e.Number != 1 || !strings.Contains(e.Error(), "/c") {
		t.Errorf("%v", e)
	}
	if e := miss("/a", "no JSON"); !strings.Contains(e.Error(), "the body differs") {
		t.Errorf("%v", e)
	}
	for range 2 {
		if got, _, err := exchange(t, play, server.URL+"/a", body, "key-0123456789"); got != "one" || err != nil {
			t.Errorf("%s %v", got, err)
		}
	}
	if e := miss("/a", body); !e.AlreadyPlayed || !strings.Contains(e.Error(), "already played") {
		t.Errorf("%v", e)
	}
	if n := play.Unplayed(); len(n) != 1 || !strings.HasSuffix(n[0], "/b") {
		t.Errorf("%q", n)
	}
}

// The second turn of a conversation contains the first, which was already played. So the
// nearest request must be the second one.
func TestZ3_UnplayedExchangeIsNearer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	rec, path := record(t, nil)
	for _, body := range []string{`{"messages":[1]}`, `{"messages":[1,"a fence",3]}`} {
		if _, _, err := exchange(t, rec, server.URL, body, "key-0123456789"); err != nil {
			t.Fatal(err)
		}
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	play, err := sim.Replay(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := exchange(t, play, server.URL, `{"messages":[1]}`, "key-0123456789"); err != nil {
		t.Fatal(err)
	}
	_, _, err = exchange(t, play, server.URL, `{"messages":[1,"another",3]}`, "key-0123456789")
	var e *sim.MismatchError
	if !errors.As(err, &e) || e.Number != 2 || e.AlreadyPlayed || !strings.Contains(e.Error(), `recorded "a fence", sent "another"`) {
		t.Errorf("%v", err)
	}
}

func TestZ3_DifferentBodyIsNearerThanDifferentURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	rec, path := record(t, nil)
	for p, body := range map[string]string{"/a": `{"a":1,"b":2,"c":3}`, "/b": `{"x":1}`} {
		if _, _, err := exchange(t, rec, server.URL+p, body, "key-0123456789"); err != nil {
			t.Fatal(err)
		}
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	play, err := sim.Replay(path)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = exchange(t, play, server.URL+"/b", `{"a":1,"b":2,"c":3}`, "key-0123456789")
	var e *sim.MismatchError
	if !errors.As(err, &e) || !strings.HasSuffix(e.Nearest, "/b") {
		t.Errorf("%v", err)
	}
}

// A codec decodes replayed traffic like the original traffic.
func TestZ3_StreamsAreReplayedByteForByte(t *testing.T) {
	server := serve(t, sim.Config{})
	inModes(t, func(t *testing.T, c client, stream bool) {
		rec, path := record(t, nil)
		req := ask("What's the weather in Oslo and Bergen? 🙂", toolbox()...)
		req.Stream = stream
		send := func(via http.RoundTripper) ([]byte, *dragoman.Response) {
			enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+c.path(req.Model, stream), bytes.NewReader(enc.Body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := via.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			raw, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			o := dialect.DecodeOptions{Registry: enc.Registry}
			out, err := (*dragoman.Response)(nil), error(nil)
			if stream {
				out, err = dragoman.Collect(dialect.Events(c.NewStreamDecoder(o), bytes.NewReader(raw)))
			} else {
				out, _, err = c.DecodeResponse(raw, o)
			}
			if err != nil {
				t.Fatal(err)
			}
			return raw, out
		}
		raw, resp := send(rec)
		if err := rec.Close(); err != nil {
			t.Fatal(err)
		}
		play, err := sim.Replay(path)
		if err != nil {
			t.Fatal(err)
		}
		again, same := send(play)
		if !bytes.Equal(raw, again) || summary(resp) != summary(same) || len(resp.ToolCalls()) != 2 {
			t.Errorf("%q\n%q", raw, again)
		}
	})
}

func TestCutResponseIsReplayedAsCut(t *testing.T) {
	server := serve(t, sim.Config{})
	rec, path := record(t, nil)
	body := `{"model":"sim/echo?fault=cut","stream":true,"messages":[{"role":"user","content":"a text of several events"}]}`
	first, _, err := exchange(t, rec, server.URL+"/v1/chat/completions", body, "key-0123456789")
	if !errors.Is(err, io.ErrUnexpectedEOF) || first == "" {
		t.Fatal(err)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	play, err := sim.Replay(path)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := exchange(t, play, server.URL+"/v1/chat/completions", body, "key-0123456789")
	if !errors.Is(err, io.ErrUnexpectedEOF) || again != first {
		t.Errorf("%v\n%s\n%s", err, first, again)
	}
}

func TestInvalidTrafficFileIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"nonsense":                 "exchange 1",
		`{"v":1}{"v":1}{`:          "exchange 3",
		`{"v":2}`:                  "version 2",
		`{"request":{},"extra":1}`: "version 0",
	} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sim.Replay(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := sim.Replay(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := sim.Record(filepath.Join(t.TempDir(), "none", "x"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
