package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/tooltest"
)

func TestZ4_EveryToolConforms(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{AllowAny: true}})
	reset := func(context.Context) error {
		entries, err := os.ReadDir(p.path("."))
		for _, e := range entries {
			err = errors.Join(err, os.RemoveAll(p.path(e.Name())))
		}
		p.file("a.txt", "one\ntwo\n")
		p.file("sub/b.txt", "three\n")
		return err
	}
	state := func(context.Context) (string, error) {
		b, err := json.Marshal(files(t, filepath.Join(p.outer, "root")))
		return string(b), err
	}
	const update = "*** Begin Patch\n*** Update File: a.txt\n one\n-two\n+2\n*** End Patch"
	suites := map[string]tooltest.Suite{
		toolname.ListFiles: {Tool: p.List(), Cases: []tooltest.Case{
			{Arguments: `{}`, Want: "a.txt"},
			{Arguments: `{"path":"sub","depth":2,"all":true,"limit":1}`, Want: "b.txt"},
			{Arguments: `{"path":"../outside"}`, Fails: true},
			{Arguments: `{"path":"none"}`, Fails: true},
		}, Invalid: []string{`{"depth":0}`, `{"limit":5001}`}},
		toolname.ReadFile: {Tool: p.Read(), Cases: []tooltest.Case{
			{Arguments: `{"path":"a.txt","start_line":2,"line_numbers":true}`, Want: "two"},
			{Arguments: `{"path":"a.txt","offset":0,"bytes":3}`, Want: "one"},
			{Arguments: `{"path":"a.txt","start_line":2,"end_line":1}`, Fails: true, Want: "before"},
			{Arguments: `{"path":"/etc/passwd"}`, Fails: true},
		}, Invalid: []string{`{"path":"a.txt","bytes":40001}`}},
		toolname.SearchFiles: {Tool: p.Search(), Cases: []tooltest.Case{
			{Arguments: `{"pattern":"^t","context":1}`, Want: "b.txt:1: three"},
			{Arguments: `{"pattern":"("}`, Fails: true},
		}, Invalid: []string{`{"pattern":"a","limit":0}`}},
		toolname.WriteFile: {Tool: p.Write(), Cases: []tooltest.Case{
			{Arguments: `{"path":"a.txt","content":"new\n"}`},
			{Arguments: `{"path":"c/d.txt","content":"new\n","parents":true}`, Varies: true}, // created by the first call, replaced by the second
			{Arguments: `{"path":".git/config","content":""}`, Fails: true},
			{Arguments: `{"path":"../outside/canary","content":""}`, Fails: true},
		}},
		toolname.ApplyPatch: {Tool: p.Patch(), Cases: []tooltest.Case{
			{Name: "update", Arguments: update, Want: "a.txt"},
			{Name: "not a patch", Arguments: "a.txt", Fails: true},
			{Name: "other lines", Arguments: "*** Begin Patch\n*** Update File: sub/b.txt\n-four\n+4\n*** End Patch", Fails: true},
		}},
	}
	if runtime.GOOS != "windows" {
		suites[toolname.Shell] = tooltest.Suite{Tool: p.Shell(), Cases: []tooltest.Case{
			{Arguments: `{"command":"cat a.txt","folder":"."}`, Want: "two", Varies: true}, // the result states the elapsed time
			{Arguments: `{"command":"no-such-program"}`, Fails: true},
			{Name: "a command that does not end", Arguments: `{"command":"sleep 60"}`, Blocks: true},
		}, Invalid: []string{`{"command":""}`}}
	}
	for _, of := range p.Tools() {
		name := tool.KeyOf(of.Spec()).Name
		s, ok := suites[name]
		if !ok && name != toolname.Shell {
			t.Errorf("%s has no suite", name)
		}
		if !ok {
			continue
		}
		s.Reset, s.State = reset, state
		t.Run(name, func(t *testing.T) { tooltest.Run(t, s) })
	}
	p.wantOutsideUntouched()
}
