package conformance

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/sim"
)

// faults checks that, whatever goes wrong, the client gets the intended response or an error,
// and never runs an incomplete call.
func faults(t *testing.T, s *session) {
	req := request("look it up", weatherTool())
	req.Model = "sim/scenario"
	want, err := s.try(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range sim.Faults() {
		if !slices.Contains(f.Dialects, s.codec.Dialect()) || f.StreamOnly && !s.streamed {
			continue
		}
		t.Run(f.ID, func(t *testing.T) {
			hostile := *req
			hostile.Model += "?fault=" + f.ID
			resp, err := s.try(context.Background(), &hostile)
			judge(t, f.Outcome, want, resp, err)
		})
	}
}

// judge checks that a response with a fault has the outcome of a correct client.
func judge(t *testing.T, want string, whole, resp *dragoman.Response, err error) {
	t.Helper()
	run := runnable(resp)
	switch want {
	case "intact":
		if err != nil || !slices.Equal(run, runnable(whole)) {
			t.Fatalf("%v: %q would run, want %q", err, run, runnable(whole))
		}
		// Half of a surrogate pair is the only thing that a client cannot read (quirk C17).
		if text := strings.Replace(resp.Text(), "\uFFFD", "", 1); text != whole.Text() || resp.Stop.Reason != whole.Stop.Reason {
			t.Errorf("text %q with stop reason %q, want text %q and %q", resp.Text(), resp.Stop.Reason, whole.Text(), whole.Stop.Reason)
		}
	case "blocked":
		if err != nil || len(run) > 0 {
			t.Errorf("%v: %q would run", err, run)
		}
	case "fails":
		if err == nil || len(run) > 0 {
			t.Errorf("%v: %q would run", err, run)
		}
	}
}

func runnable(resp *dragoman.Response) []string {
	var out []string
	if resp == nil {
		return nil
	}
	for _, c := range resp.ToolCalls() {
		if c.Problem == nil {
			obj, _ := c.Object()
			out = append(out, c.QualifiedName()+string(bytes.TrimSpace(obj)))
		}
	}
	return out
}
