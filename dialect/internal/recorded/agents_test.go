package recorded_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// TestAgentRequestsDecodeWithoutLoss decodes requests that Codex CLI and opencode
// really sent. Decoding and re-encoding must lose nothing, and every other
// dialect must be able to encode the request.
func TestAgentRequestsDecodeWithoutLoss(t *testing.T) {
	for _, x := range traffic.AgentRequests(t) {
		t.Run(x.Name, func(t *testing.T) {
			a := x.Source
			req, report, err := a.Codec.DecodeRequest(x.Body, dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := report.Err(dragoman.Warn); err != nil {
				t.Errorf("decoding: %v", err)
			}
			same, err := a.Codec.EncodeRequest(req, dialect.EncodeOptions{})
			if err != nil || string(same.Body) != string(x.Body) {
				t.Errorf("an unchanged request is not byte-identical (%v)\n%s", err, firstDifference(string(x.Body), string(same.Body)))
			}
			rebuilt, err := a.Codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := rebuilt.Report.Err(dragoman.Warn); err != nil {
				t.Errorf("rebuilding: %v", err)
			}
			was, err := decodeJSON(x.Body)
			if err != nil {
				t.Fatal(err)
			}
			is, err := decodeJSON(rebuilt.Body)
			if err != nil {
				t.Fatal(err)
			}
			differing := explain(requestExplanations[a.File])
			differing.add(x.Path, diff("", was, is))
			for path, example := range differing.unknown {
				t.Errorf("rebuilt request: %s differs: %s", path, example)
			}
			for _, other := range traffic.Sources() {
				enc, err := other.Codec.EncodeRequest(req, dialect.EncodeOptions{})
				if err != nil {
					t.Errorf("encoding for %s: %v", other.File, err)
					continue
				}
				t.Logf("encoding for %s: %d of %d bytes, %d losses reported", other.File, len(enc.Body), len(x.Body), len(enc.Report.Losses))
			}
		})
	}
}

// TestLiveOllamaDecodesInRecordedChunks replays a real Ollama server; its
// recordings keep the boundaries of HTTP chunks.
func TestLiveOllamaDecodesInRecordedChunks(t *testing.T) {
	f, err := os.Open(testkit.Shared(t, "recorded", "live_ollama.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no recorded traffic: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var heads []string
	tallies := map[string]*traffic.Tally{}
	for _, a := range apis() {
		heads = append(heads, a.Live)
		tallies[a.Live] = &traffic.Tally{}
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var x struct {
			API        string
			Case       string
			Req        json.RawMessage
			Status     int
			Resp       string
			Stream     bool
			HTTPChunks []int `json:"http_chunks"`
		}
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		for _, a := range apis() {
			if a.Live != x.API {
				continue
			}
			counts := tallies[a.Live]
			name := x.API + " " + x.Case
			var broken string
			if json.Unmarshal(x.Req, &broken) == nil {
				var at *dragoman.DecodeError
				if _, _, err := a.Codec.DecodeRequest([]byte(broken), dialect.DecodeOptions{}); !errors.As(err, &at) || at.Offset < 0 {
					t.Errorf("%s: a truncated request returns %v, want a DecodeError with an offset", name, err)
				}
				counts.Add("truncated requests", 1)
			} else if req, _, err := a.Codec.DecodeRequest(x.Req, dialect.DecodeOptions{}); err != nil {
				t.Errorf("%s: %v", name, err)
			} else {
				same, err := a.Codec.EncodeRequest(req, dialect.EncodeOptions{})
				if err != nil || string(same.Body) != string(x.Req) {
					t.Errorf("%s: an unchanged request is not byte-identical (%v)", name, err)
				}
				counts.Add("requests", 1)
			}
			switch {
			case x.Status >= 400:
				counts.Add("error responses", 1)
				if e := a.Codec.DecodeError(x.Status, nil, []byte(x.Resp)); e.Message == "" || !strings.Contains(sensibleClasses[x.Status], string(e.Class)) {
					t.Errorf("%s: %s %q from %s", name, e.Class, e.Message, x.Resp)
				}
			case x.Stream:
				counts.Add("streams", 1)
				events, done, err := a.objects(x.Resp)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				want := a.stream(events, done)
				resp, out, err := reencodeInChunks(a, x.Resp, x.HTTPChunks)
				for _, d := range want.differences(streamReading(resp, err)) {
					t.Errorf("%s: stream: %s", name, d)
				}
				again, done, err := a.objects(out)
				if err != nil {
					t.Errorf("%s: re-encoded: %v", name, err)
				}
				got := a.stream(again, done)
				got.FirstID = want.FirstID
				for _, d := range want.differences(got) {
					t.Errorf("%s: re-encoded stream: %s", name, d)
				}
			default:
				counts.Add("responses", 1)
				resp, _, err := a.Codec.DecodeResponse([]byte(x.Resp), dialect.DecodeOptions{})
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				raw, err := decodeObject(x.Resp)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				for _, d := range a.whole(raw).differences(canonicalReading(resp)) {
					t.Errorf("%s: response: %s", name, d)
				}
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	var ts []*traffic.Tally
	for _, h := range heads {
		ts = append(ts, tallies[h])
	}
	t.Log(traffic.Table(heads, ts))
}
