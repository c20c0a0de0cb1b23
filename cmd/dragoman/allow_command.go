package main

import (
	"context"
	"encoding/json"
	"path"

	"github.com/spf13/pflag"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/text/shell"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/tool"
)

// commandFlags holds the patterns of --allow-command.
type commandFlags struct {
	patterns []string
	list     *shell.List
}

func (c *commandFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&c.patterns, "allow-command", nil, "run commands that match this pattern without approval, such as \"go test ...\"; may be repeated")
}

// check parses the patterns.
func (c *commandFlags) check() (err error) {
	if len(c.patterns) == 0 {
		return nil
	}
	if c.list, err = shell.Allow(c.patterns...); err != nil {
		return usageError("--allow-command: %w", err)
	}
	return nil
}

// approve approves a call if its command is one program with arguments, without shell
// operators, matches a pattern and runs in the workspace folder itself. It does not answer
// if the policy asks about the call.
func (c *commandFlags) approve(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	if c.list == nil || asksHuman(req) || req.Binding.Key != (tool.Key{Kind: codes.KeyBare, Name: toolname.Shell}) {
		return tool.Answer{}, nil
	}
	var in struct {
		Command string `json:"command"`
		Folder  string `json:"folder"`
	}
	if err := json.Unmarshal(req.Input.Arguments, &in); err != nil {
		return tool.Answer{}, err
	}
	if in.Folder != "" && path.Clean(in.Folder) != "." {
		return tool.Answer{}, nil // in another folder, ./build.sh and make run other programs
	}
	if _, err := c.list.Check(in.Command); err != nil {
		return tool.Answer{}, nil //nolint:nilerr // a human decides
	}
	return tool.Answer{Verdict: tool.Approved}, nil
}

// asksHuman reports whether the policy wants a human to answer.
func asksHuman(req *tool.ApprovalRequest) bool {
	return req.Wanted != nil || req.Decision != nil && (req.Decision.Effect == tool.Ask || req.Decision.Effect == tool.AskInput)
}
