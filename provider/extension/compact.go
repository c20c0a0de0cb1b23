package extension

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/history"
)

// CompactID is the action of [Compact].
const CompactID = "compact_native_history"

// Compact is a feature with one action, [CompactID]: it trims the native history of
// a session to its last messages, with the instructions it begins with. It cuts
// where no call is parted from its result and no turn in two.
type Compact struct {
	// Keep is how many messages stay at least, where the parameters do not say;
	// zero means 40.
	Keep int
	// OnSave does it whenever a program calls the session's BeforeSave, which package
	// session has. Nothing else does it: neither saving a session itself nor an agent, which
	// do not know the wire whose native history it is.
	OnSave bool
}

const defaultKeep = 40

// Info says that it is on for every request.
func (Compact) Info() Info {
	return Info{Name: "dragoman.compact", Version: "1", Description: "Trims the native history of a session."}
}

// Actions is the one that it has.
func (c Compact) Actions(Env) []Action {
	a := Action{
		ID: CompactID, Label: "Compact history", Description: "Keeps the last messages of the native history, and the instructions it begins with.",
		Inputs: json.RawMessage(`{"type":"object","properties":{"keep":{"type":"integer","minimum":1,"description":"how many messages stay at least"}},"additionalProperties":false}`),
		Run:    c.run,
	}
	if c.OnSave {
		a.Triggers = []Trigger{BeforeSave}
	}
	return []Action{a}
}

// CodeUneven is the code of what [CompactID] cannot do: the native history does not
// line up with the session's.
const CodeUneven = "not_aligned"

const metadataKey = "dragoman.compact"

func (c Compact) run(_ context.Context, in ActionInput) (ActionResult, error) {
	keep := c.Keep
	if keep <= 0 {
		keep = defaultKeep
	}
	if len(in.Params) > 0 {
		params := struct {
			Keep *int `json:"keep"`
		}{}
		if err := json.Unmarshal(in.Params, &params); err != nil || params.Keep != nil && *params.Keep < 1 {
			return ActionResult{}, &ActionError{CodeParams, `the parameters must be like {"keep": 40}`}
		}
		if params.Keep != nil {
			keep = *params.Keep
		}
	}
	var messages []dragoman.Message
	if in.Session != nil {
		messages = in.Session.Messages()
	}
	if len(messages) != len(in.Native) {
		return ActionResult{}, &ActionError{CodeUneven, fmt.Sprintf("the native history has %d messages where the session has %d, so that nobody knows where to cut", len(in.Native), len(messages))}
	}
	head := 0 // instructions stay
	for head < len(messages) && (messages[head].Role == dragoman.RoleSystem || messages[head].Role == dragoman.RoleDeveloper) {
		head++
	}
	from, last := 0, 0
	for _, at := range history.CutPoints(messages[head:]) {
		if len(messages)-head-at < keep {
			break
		}
		last = at
		if messages[head+at].Role == dragoman.RoleUser { // the best place: a new exchange
			from = at
		}
	}
	if from == 0 {
		from = last
	}
	if from == 0 {
		return ActionResult{}, nil
	}
	return ActionResult{
		Native:   slices.Concat(in.Native[:head], in.Native[head+from:]),
		Metadata: json.RawMessage(fmt.Sprintf(`{%q:{"dropped":%d}}`, metadataKey, from)),
	}, nil
}
