package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// A record lists what was cut from an output and the name under which the whole output is
// stored, also after the run was resumed from a store.
func TestT10_RecordNamesTheStoredOutput(t *testing.T) {
	whole := strings.Repeat("é", 300) + strings.Repeat("z", 300)
	for _, kept := range []string{"memory", "session"} {
		var did counted
		a := agent.Agent{
			Model: model(calls("a much", "b ask"), textResponse("done")),
			Tools: []tool.Tool{
				tool.New("much", "Says much.", func(context.Context, struct{}) (string, error) { return whole, nil },
					tool.Set(func(s *tool.Settings) { s.Limits.Chars = 100 })),
				did.tool("ask", tool.NeedsApproval()),
			},
		}
		var spill tool.SpillStore = &tool.MemorySpill{}
		var opts []agent.Option
		if kept == "session" {
			s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{ID: "s"}))
			spill, opts = s.Spill(), append(opts, agent.In(s))
		}
		a.Runner = &tool.Runner{Spill: spill}
		check := func(res *agent.Result) {
			t.Helper()
			cut := res.Records[0].Cut
			if cut == nil || cut.Characters != 500 || cut.Stored == "" || cut.Lost() {
				t.Fatalf("%s: %+v", kept, cut)
			}
			text, total, err := spill.Read(t.Context(), res.Run, cut.Stored, 0, 10_000)
			if err != nil || text != whole || total != len(whole) {
				t.Errorf("%s: %d of %d bytes, %v", kept, len(text), total, err)
			}
			if res.Records[1].Cut != nil {
				t.Errorf("%s: the short output is cut: %+v", kept, res.Records[1].Cut)
			}
		}
		res, err := a.Run(t.Context(), "go", opts...)
		if !errors.Is(err, agent.ErrInterrupted) {
			t.Fatal(err)
		}
		check(res)
		state := stored(t, res.State)
		if kept == "session" {
			state = nil
		}
		check(must[*agent.Result](t)(a.Resume(t.Context(), state, append(opts, agent.Approve(res.Pending[0]))...)))
	}
}

func TestT10_RecordListsCutsOfEachLimit(t *testing.T) {
	texts := func(n int) (out []dragoman.Part) {
		for range n {
			out = append(out, &dragoman.Text{Text: "four"})
		}
		return out
	}
	image := &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: strings.Repeat("QUJD", 100)}
	for name, tc := range map[string]struct {
		limits tool.Limits
		out    any
		want   tool.Cut
		lost   bool
	}{
		"parts":        {tool.Limits{Items: 4}, texts(10), tool.Cut{Parts: 6, Characters: 24}, false},
		"media":        {tool.Limits{Binary: 100}, []dragoman.Part{image}, tool.Cut{Bytes: 300}, true},
		"media parts":  {tool.Limits{Items: 1}, []dragoman.Part{&dragoman.Text{Text: "a"}, image}, tool.Cut{Parts: 1, Bytes: 300}, true},
		"data strings": {tool.Limits{Chars: 5000}, &dragoman.Data{JSON: json.RawMessage(`{"a":"` + strings.Repeat("x", 6000) + `"}`)}, tool.Cut{Characters: 4000}, false},
		"data":         {tool.Limits{Chars: 50}, &dragoman.Data{JSON: json.RawMessage(`"` + strings.Repeat("x", 98) + `"`)}, tool.Cut{Characters: 50}, false},
		"none":         {tool.Limits{}, "short", tool.Cut{}, false},
	} {
		much := tool.New("much", "Says much.", func(context.Context, struct{}) (any, error) { return tc.out, nil },
			tool.Set(func(s *tool.Settings) { s.Limits, s.Trusted = tc.limits, true }))
		for _, spill := range []tool.SpillStore{&tool.MemorySpill{}, tool.NoSpill, &tool.MemorySpill{MaxBytes: 1}} {
			run := (&tool.Runner{Spill: spill}).Start("r")
			b := must[*tool.Batch](t)(run.Do(t.Context(), must[*tool.Box](t)(tool.NewBox(much)), tool.Turn{Calls: []*dragoman.ToolCall{{ID: "a", Name: "much", Arguments: "{}"}}}))
			got := b.Records[0].Cut
			if name == "none" {
				if got != nil {
					t.Errorf("none: %+v", got)
				}
				continue
			}
			if got == nil {
				t.Fatalf("%s: no cut\n%s", name, b.Records[0].Plain)
			}
			m, memory := spill.(*tool.MemorySpill)
			stores := memory && m.MaxBytes == 0 && tc.want.Characters > 0
			if (got.Stored != "") != stores || got.Lost() != (tc.lost || !stores) {
				t.Errorf("%s: stored %q, lost %v", name, got.Stored, got.Lost())
			}
			if memory && m.MaxBytes > 0 && tc.want.Characters > 0 && (b.Records[0].Cause == nil || !strings.Contains(b.Records[0].Cause.Error(), "maximum of 1 byte:")) {
				t.Errorf("%s: cause %v", name, b.Records[0].Cause)
			}
			if c := *got; c.Characters != tc.want.Characters || c.Parts != tc.want.Parts || c.Bytes != tc.want.Bytes {
				t.Errorf("%s: got %+v, want %+v", name, c, tc.want)
			}
		}
	}
}
