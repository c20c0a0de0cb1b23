package servers

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// Models is what is known of the models of a family, whoever serves them in one of
// some dialects: an extension made of data.
type Models struct {
	Name, Description string
	// Requires and Forbids are the tags by which it is on.
	Requires, Forbids []extension.Tag
	// Rows are looked at in order: the first that names a model counts.
	Rows []Row
}

// Row is what is known of some models.
type Row struct {
	// Names are what the names of the models hold, behind who serves them: "gpt-5.1"
	// is in "gpt-5.1-codex" and in "openai/gpt-5.1", and is not in "gpt-5.10".
	Names []string
	// Dialect is the one in which it holds; empty means all.
	Dialect dragoman.Dialect
	// Caps are laid over what the dialect and the server say: what is zero stays.
	Caps dragoman.Capabilities
}

// Info says by which tags the family is known.
func (m Models) Info() extension.Info {
	return extension.Info{Name: m.Name, Version: "1", Description: m.Description, Requires: m.Requires, Forbids: m.Forbids}
}

// Prepare says what the model can do.
func (m Models) Prepare(_ context.Context, x *extension.Exchange) error {
	for i := range m.Rows {
		if r := &m.Rows[i]; r.names(x.Target.Model) && (r.Dialect == "" || r.Dialect == x.Target.Dialect) {
			lay(&x.Target.Caps, r.Caps)
			return nil
		}
	}
	return nil
}

// Idle is true: what is known of models says what their own APIs refuse.
func (Models) Idle(json.RawMessage) bool { return true }

// names reports whether a row speaks of a model.
func (r *Row) names(model string) bool {
	model = strings.ToLower(model)
	return slices.ContainsFunc(r.Names, func(n string) bool {
		before, behind, found := strings.Cut(model, n)
		return found && (behind == "" || behind[0] != '.' && !isDigit(behind[0])) &&
			(before == "" || !isDigit(before[len(before)-1]) && !isLetter(before[len(before)-1]))
	})
}

func isDigit(b byte) bool  { return b >= '0' && b <= '9' }
func isLetter(b byte) bool { return b >= 'a' && b <= 'z' }

// lay puts the capabilities that are not zero over others.
func lay(over *dragoman.Capabilities, caps dragoman.Capabilities) {
	to, from := reflect.ValueOf(over).Elem(), reflect.ValueOf(caps)
	for i := range from.NumField() {
		if f := from.Field(i); !f.IsZero() {
			to.Field(i).Set(f)
		}
	}
}

// modelTable is what is known of models by their names.
func modelTable() []extension.Extension {
	const all = "none low medium high xhigh max"
	reasons := dragoman.Capabilities{NoSampling: true}
	with := func(c dragoman.Capabilities, efforts string) dragoman.Capabilities {
		c.Efforts = efforts
		return c
	}
	// All of Claude since 4 takes so much; what Anthropic's codec says of older models is
	// little for an agent's work.
	const answer = 32_000
	adaptive := dragoman.Capabilities{NoSampling: true, NoThinkingBudgets: true, NoPrefill: true, DefaultMaxTokens: answer}
	unforced := adaptive
	unforced.ForcedChoice = dragoman.ForcedNever
	return []extension.Extension{
		Models{
			Name: "openai.models", Description: "OpenAI's models: what they take while they reason.",
			Requires: []extension.Tag{ServerTag("openai"), FamilyTag("gpt")},
			Rows: []Row{
				// On Chat, models since 5.4 call tools only where they do not reason, and
				// some not at all (quirk E12).
				{Names: []string{"gpt-6-astra", "gpt-6.1-sol"}, Dialect: chat, Caps: dragoman.Capabilities{NoTools: true, NoSampling: true}},
				{Names: []string{"gpt-5.4"}, Dialect: chat, Caps: dragoman.Capabilities{NoReasoningWithTools: true}},
				{Names: []string{"gpt-5.5"}, Dialect: chat, Caps: dragoman.Capabilities{NoReasoningWithTools: true, NoSampling: true}},
				{Names: []string{"gpt-5.6", "gpt-6"}, Dialect: chat, Caps: dragoman.Capabilities{NoReasoningWithTools: true, NoSampling: true, Efforts: all}},
				{Names: []string{"gpt-6-astra"}, Caps: with(reasons, "low medium high xhigh max")},
				{Names: []string{"gpt-5.6", "gpt-6", "gpt-6.1"}, Caps: with(reasons, all)},
				{Names: []string{"gpt-5.5"}, Caps: reasons},
				{Names: []string{"gpt-5.1"}, Caps: dragoman.Capabilities{Efforts: "none low medium high"}},
				{Names: []string{"gpt-5"}, Caps: with(reasons, "minimal low medium high")},
				{Names: []string{"o1", "o3", "o4"}, Caps: with(reasons, "low medium high")},
			},
		},
		Models{
			Name: "claude.models", Description: "Claude, in its own dialect and on Bedrock: how it thinks, and what it takes beside that.",
			Requires: []extension.Tag{FamilyTag("claude")}, Forbids: []extension.Tag{DialectTag(chat), DialectTag(dragoman.OpenAIResponses)},
			Rows: []Row{
				{Names: []string{"claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1", "claude-fable-5-2"}, Caps: with(unforced, "low medium high xhigh max")},
				{Names: []string{"claude-fable-5", "claude-mythos-5"}, Caps: with(adaptive, "low medium high xhigh max")},
				{Names: []string{"claude-haiku-5-5"}, Caps: with(adaptive, all)},
				{Names: []string{"claude-opus-4-7", "claude-opus-4-8", "claude-sonnet-5"}, Caps: with(adaptive, all)},
				{Names: []string{"claude-opus-5"}, Caps: dragoman.Capabilities{NoSampling: true, NoPrefill: true, Efforts: all, DefaultMaxTokens: answer}},
				{Names: []string{"claude-opus-4-6", "claude-sonnet-4-6"}, Caps: dragoman.Capabilities{NoPrefill: true, OneSampler: true, DefaultMaxTokens: answer}},
				{Names: []string{
					"claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-1",
				}, Caps: dragoman.Capabilities{ThinkingBudgets: true, OneSampler: true, DefaultMaxTokens: answer}},
				{Names: []string{"claude-opus-4", "claude-sonnet-4"}, Caps: dragoman.Capabilities{ThinkingBudgets: true, DefaultMaxTokens: answer}},
				{Names: []string{"claude-3", "claude-2"}, Caps: dragoman.Capabilities{ThinkingBudgets: true}},
			},
		},
		Models{
			Name: "gemini.models", Description: "Gemini's models: the levels of thinking that they have.",
			Requires: []extension.Tag{DialectTag(dragoman.Gemini), FamilyTag("gemini")},
			Rows:     []Row{{Names: []string{"gemini-3.7-flash"}, Caps: dragoman.Capabilities{Efforts: "low medium high"}}},
		},
	}
}
