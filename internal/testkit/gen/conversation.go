package gen

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"pgregory.net/rapid"
)

// Messages generates a conversation.
func (o Options) Messages() *rapid.Generator[[]dragoman.Message] {
	return rapid.Custom(func(t *rapid.T) []dragoman.Message {
		return o.conversation(t, o.Tools().Draw(t, "tools"))
	})
}

// Message generates any message. Unlike a message of a conversation, it may have any
// parts.
func (o Options) Message() *rapid.Generator[dragoman.Message] {
	return rapid.Custom(func(t *rapid.T) dragoman.Message {
		role := rapid.SampledFrom([]dragoman.Role{
			dragoman.RoleSystem, dragoman.RoleDeveloper, dragoman.RoleUser, dragoman.RoleAssistant, dragoman.RoleTool, "critic",
		}).Draw(t, "role")
		m := o.message(t, role, rapid.SliceOfN(o.Part(), 0, 4).Draw(t, "parts")...)
		m.Parts = list(t, o, m.Parts)
		return m
	})
}

// message completes a message: header, native state and native form.
func (o Options) message(t *rapid.T, role dragoman.Role, parts ...dragoman.Part) dragoman.Message {
	m := dragoman.Message{Role: role, Parts: parts, Cache: o.cache(t), Extra: o.extra(t), Origin: o.origin(t)}
	if role == dragoman.RoleUser {
		m.Name = optional(t, "name", "ada")
	}
	if role == dragoman.RoleAssistant && o.native(t) {
		m.Phase = "commentary"
		m.Status = rapid.SampledFrom([]string{"", codes.StatusIncomplete}).Draw(t, "status")
	}
	m.Native = o.sidecar(t, m.Fingerprint)
	return m
}

func (o Options) conversation(t *rapid.T, tools []dragoman.ToolSpec) []dragoman.Message {
	var ms []dragoman.Message
	if rapid.Bool().Draw(t, "system") {
		role := rapid.SampledFrom([]dragoman.Role{dragoman.RoleSystem, dragoman.RoleDeveloper}).Draw(t, "system role")
		ms = append(ms, o.message(t, role, o.TextPart().Draw(t, "system")))
	}
	used := map[string]bool{}
	for turn := range rapid.IntRange(1, 4).Draw(t, "turns") {
		if turn == 0 || rapid.Bool().Draw(t, "user speaks") {
			ms = append(ms, o.message(t, dragoman.RoleUser, o.userParts(t)...))
		}
		if !o.Tidy && (len(ms) == 0 || ms[len(ms)-1].Role != dragoman.RoleAssistant) {
			clear(used) // an id may be reused in a later turn (quirk B12)
		}
		output, calls := o.turn(t, tools, used)
		ms = append(ms, output...)
		if len(calls) == 0 {
			continue
		}
		var results []dragoman.Part
		for _, c := range calls {
			results = append(results, o.result(t, c))
		}
		ms = append(ms, o.message(t, dragoman.RoleTool, results...))
	}
	return ms
}

func (o Options) userParts(t *rapid.T) []dragoman.Part {
	parts := []dragoman.Part{o.TextPart().Draw(t, "user text")}
	for range rapid.IntRange(0, 2).Draw(t, "more user parts") {
		if rapid.Bool().Draw(t, "media") {
			parts = append(parts, o.Media().Draw(t, "user media"))
		} else {
			parts = append(parts, o.TextPart().Draw(t, "user text"))
		}
	}
	return parts
}

// turn draws the messages of a model's turn, and the calls that need results.
func (o Options) turn(t *rapid.T, tools []dragoman.ToolSpec, used map[string]bool) ([]dragoman.Message, []*dragoman.ToolCall) {
	var out []dragoman.Message
	var calls []*dragoman.ToolCall
	for range rapid.IntRange(1, 2).Draw(t, "messages of the turn") {
		var parts []dragoman.Part
		if rapid.Bool().Draw(t, "thinks") {
			parts = append(parts, o.Reasoning().Draw(t, "reasoning"))
		}
		if rapid.Bool().Draw(t, "talks") {
			parts = append(parts, o.TextPart().Draw(t, "answer"))
		}
		if !o.Plain && seldom(t, "searches") {
			parts = append(parts, o.Opaque().Draw(t, "opaque"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			id := o.id().Draw(t, "id")
			if used[id] {
				continue
			}
			used[id] = true
			c := o.call(t, tools, id)
			if !o.Plain && seldom(t, "hosted") {
				c.Hosted, c.Problem = true, nil
			} else {
				calls = append(calls, c)
			}
			parts = append(parts, c)
		}
		if len(parts) == 0 {
			if rapid.Bool().Draw(t, "refuses") {
				parts = append(parts, &dragoman.Refusal{Text: o.words().Draw(t, "refusal"), Extra: o.extra(t)})
			} else {
				parts = append(parts, o.TextPart().Draw(t, "answer"))
			}
		}
		out = append(out, o.message(t, dragoman.RoleAssistant, parts...))
	}
	return out, calls
}

// ToolSpec generates one tool.
func (o Options) ToolSpec() *rapid.Generator[dragoman.ToolSpec] {
	return rapid.Custom(func(t *rapid.T) dragoman.ToolSpec {
		s := dragoman.ToolSpec{
			Name:        o.Name().Draw(t, "name"),
			Description: text(t, o, "description"),
			Strict:      rapid.SampledFrom([]string{codes.StrictOff, codes.StrictOn, codes.StrictAuto, codes.StrictUnset}).Draw(t, "strict"),
			Cache:       o.cache(t),
			Extra:       o.extra(t),
			Annotations: dragoman.Annotations{Title: optional(t, "title", "Weather ☂"), ReadOnly: maybe(t, "read only", rapid.Bool()), Destructive: maybe(t, "destructive", rapid.Bool()), Idempotent: maybe(t, "idempotent", rapid.Bool()), OpenWorld: maybe(t, "open world", rapid.Bool())},
		}
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			s.Kind = codes.ToolFreeform
			s.Strict = codes.StrictOff
			if rapid.Bool().Draw(t, "grammar") {
				s.Grammar = &dragoman.Grammar{Syntax: "regex", Definition: `^[a-z]+\d*$`}
			}
		case 1:
			if !o.Plain {
				s = dragoman.ToolSpec{Kind: codes.ToolHosted, Name: s.Name, Source: &dragoman.ToolSource{
					Format: dragoman.Format(o.dialect(t) + ".hosted"), JSON: Object().Draw(t, "definition"),
				}}
				s.Source.Mirror = s.Fingerprint()
				return s
			}
			fallthrough
		default:
			if rapid.IntRange(0, 4).Draw(t, "takes arguments") > 0 {
				s.Parameters = Schema().Draw(t, "parameters")
			}
			if seldom(t, "output schema") {
				s.OutputSchema = Schema().Draw(t, "output schema")
			}
			if seldom(t, "examples") {
				s.Examples = list(t, o, rapid.SliceOfN(Object(), 0, 2).Draw(t, "examples"))
			}
		}
		s.Deferred = seldom(t, "deferred")
		if rapid.IntRange(0, 3).Draw(t, "namespaced") == 0 {
			s.Namespace, s.NamespaceDescription = "crm", "Customers & orders"
		}
		if o.native(t) {
			s.Source = &dragoman.ToolSource{Format: toolformat.AnthropicTool, JSON: Object().Draw(t, "source"), Mirror: s.Fingerprint()}
		}
		return s
	})
}

// Tools generates tools with distinct qualified names; the tools of a namespace are
// consecutive.
func (o Options) Tools() *rapid.Generator[[]dragoman.ToolSpec] {
	return rapid.Custom(func(t *rapid.T) []dragoman.ToolSpec {
		all := rapid.SliceOfNDistinct(o.ToolSpec(), 0, 5, func(s dragoman.ToolSpec) string { return s.QualifiedName() }).Draw(t, "tools")
		var flat, grouped []dragoman.ToolSpec
		for _, s := range all {
			if s.Namespace == "" {
				flat = append(flat, s)
			} else {
				grouped = append(grouped, s)
			}
		}
		return list(t, o, append(flat, grouped...))
	})
}

// ToolChoice generates a choice among tools.
func (o Options) ToolChoice(tools []dragoman.ToolSpec) *rapid.Generator[*dragoman.ToolChoice] {
	return rapid.Custom(func(t *rapid.T) *dragoman.ToolChoice {
		client := clientTools(tools)
		modes := []string{dragoman.ChoiceAuto, dragoman.ChoiceNone, dragoman.ChoiceRequired}
		if len(client) > 0 {
			modes = append(modes, dragoman.ChoiceTool)
		}
		if !o.Plain {
			modes = append(modes, codes.ChoiceOpaque)
		}
		c := &dragoman.ToolChoice{Mode: rapid.SampledFrom(modes).Draw(t, "mode"), Extra: o.extra(t)}
		ref := func(s dragoman.ToolSpec) dragoman.ToolRef {
			return dragoman.ToolRef{Namespace: s.Namespace, Name: s.Name, Kind: s.Kind, Native: o.nativeObject(t)}
		}
		switch c.Mode {
		case dragoman.ChoiceTool:
			c.Tools = []dragoman.ToolRef{ref(rapid.SampledFrom(client).Draw(t, "forced"))}
		case codes.ChoiceOpaque:
			c.Native = &dragoman.Native{Format: dragoman.Format(o.dialect(t)), JSON: Object().Draw(t, "choice")}
		case dragoman.ChoiceAuto, dragoman.ChoiceRequired:
			var allowed []dragoman.ToolRef
			for _, s := range client {
				if rapid.IntRange(0, 2).Draw(t, "allowed") == 0 {
					allowed = append(allowed, ref(s))
				}
			}
			c.Tools = list(t, o, allowed)
		}
		return c
	})
}

// Request generates a request: a conversation, the tools it uses, and settings.
func (o Options) Request() *rapid.Generator[*dragoman.Request] {
	return rapid.Custom(func(t *rapid.T) *dragoman.Request {
		number := rapid.SampledFrom([]dragoman.Number{"0", "1", "1.0", "0.70", "2e-1"})
		count := rapid.Int64Range(1, 1<<53+1)
		r := &dragoman.Request{
			Model:             rapid.SampledFrom([]string{"gpt-5.1", "claude-opus-5-5", "org/model:tag"}).Draw(t, "model"),
			Tools:             o.Tools().Draw(t, "tools"),
			ParallelToolCalls: maybe(t, "parallel", rapid.Bool()),
			MaxOutputTokens:   maybe(t, "max tokens", rapid.Int64Range(1, 1<<20)),
			Cache:             o.cache(t),
			CacheKey:          optional(t, "cache key", "k"),
			User:              optional(t, "user", "u-1"),
			ServiceTier:       optional(t, "tier", "auto", "flex"),
			Verbosity:         optional(t, "verbosity", "low", "high"),
			Store:             maybe(t, "store", rapid.Bool()),
			Stream:            rapid.Bool().Draw(t, "stream"),
			StreamUsage:       rapid.Bool().Draw(t, "stream usage"),
			Extra:             o.extra(t),
			Sampling: dragoman.Sampling{
				Temperature: maybe(t, "temperature", number), TopP: maybe(t, "top p", number), TopK: maybe(t, "top k", rapid.Int64Range(0, 100)),
				FrequencyPenalty: maybe(t, "frequency", number), PresencePenalty: maybe(t, "presence", number), Seed: maybe(t, "seed", count),
				Stop:       list(t, o, rapid.SliceOfN(o.words(), 0, 2).Draw(t, "stop")),
				Candidates: maybe(t, "candidates", rapid.Int64Range(1, 3)),
			},
		}
		for range rapid.IntRange(0, 2).Draw(t, "instructions") {
			r.Instructions = append(r.Instructions, o.TextPart().Draw(t, "instruction"))
		}
		r.Messages = o.conversation(t, r.Tools)
		if len(r.Tools) > 0 && rapid.Bool().Draw(t, "chooses") {
			r.ToolChoice = o.ToolChoice(r.Tools).Draw(t, "choice")
		}
		if seldom(t, "structured") {
			r.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: optional(t, "schema name", "answer"), Description: text(t, o, "schema description"), Schema: Schema().Draw(t, "schema"), Strict: codes.StrictOn, Extra: o.extra(t)}
			if o.native(t) {
				r.Output.Dialect = o.dialect(t)
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "reasons") == 0 {
			r.Reasoning = &dragoman.ReasoningSettings{
				Mode:   rapid.SampledFrom([]string{"", codes.ReasoningOff, codes.ReasoningAdaptive}).Draw(t, "reasoning mode"),
				Effort: optional(t, "effort", "low", "high"), Summary: optional(t, "reasoning summary", "auto"),
				Encrypted: maybe(t, "encrypted", rapid.Bool()), Extra: o.extra(t),
			}
			if r.Reasoning.Mode == "" && rapid.Bool().Draw(t, "budget") {
				r.Reasoning.Mode, r.Reasoning.BudgetTokens = codes.ReasoningBudget, maybe(t, "budget", rapid.Int64Range(1024, 1<<15))
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "metadata") {
			kv := dragoman.KeyValue{Key: o.words().Draw(t, "key"), Value: text(t, o, "value")}
			if o.Tidy && slices.ContainsFunc(r.Metadata, func(other dragoman.KeyValue) bool { return other.Key == kv.Key }) {
				continue
			}
			r.Metadata = append(r.Metadata, kv)
		}
		// Only the own dialect can resolve a stored response; others refuse the request.
		if o.Dialect == dialectname.OpenAIResponses && o.native(t) {
			r.PreviousResponseID = "resp_0"
		}
		r.Native = o.sidecar(t, r.Fingerprint)
		return r
	})
}
