package history_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/rulecheck"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"github.com/dragoman-go/dragoman/targets"
)

var codecs = []dialect.Codec{
	openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}, bedrock.Codec{}, cohere.Codec{},
}

// strictest returns limits with every requirement that a target can have.
func strictest() targets.Limits {
	return targets.Limits{
		Dialect: "strict.test", GroupedResults: true, OrderedResults: true, ResultNames: true, UniqueIDs: true,
		ToolsForHistory: true, NoBlankText: true, UserFirst: true, NoMidSystem: true, SignedReasoning: true,
		ReasoningInLoop: true, StorageURLs: []string{"s3://"}, MaxImages: 3, MaxDocuments: 2,
		DummySignature: "dummy", MediaKinds: []string{codes.MediaImage}, NoMediaURL: true, NoMediaFileID: true,
		TextWithFiles: true, MediaRoles: []dragoman.Role{dragoman.RoleUser},
		Replay: targets.ReplayRules{Messages: targets.MatchDialect, Reasoning: targets.MatchDialect | targets.MatchProvider},
	}
}

// anyTarget draws options for any target, with any capabilities of its models.
func anyTarget(t *rapid.T) history.Options {
	o := history.Options{
		Abandon:         rapid.SampledFrom([]string{codes.AbandonAll, codes.AbandonPassed, codes.AbandonNone}).Draw(t, "abandon"),
		ReasoningAsText: rapid.Bool().Draw(t, "as text"),
	}
	which := rapid.IntRange(0, len(codecs)).Draw(t, "target")
	if which < len(codecs) {
		o.Limits = codecs[which].Limits()
	} else {
		o.Limits = strictest()
	}
	flag := func(label string) bool { return rapid.IntRange(0, 5).Draw(t, label) == 0 }
	o.Target.Provider = rapid.SampledFrom([]string{"", "openai", "anthropic"}).Draw(t, "provider of the target")
	o.Target.Caps = targets.Capabilities{
		NoTools: flag("no tools"), NoImages: flag("no images"), MidSystem: flag("mid system"), NoReasoning: flag("no reasoning"),
		NoOldReasoning: flag("no old reasoning"), NoPrefill: flag("no prefill"), Alternate: flag("alternate"),
		SplitCalls: flag("split calls"), AssistantAfterTools: flag("assistant after tools"), NoDummySignature: flag("no dummy"),
		ToolResultName: flag("result name"),
	}
	if flag("reasoning field") {
		o.Target.Caps.ReasoningField = "reasoning"
	}
	return o
}

// anyRequest draws a request with a damaged conversation: written by several
// models, cut, shuffled, edited, canceled.
func anyRequest(t *rapid.T) *dragoman.Request {
	req := gen.Options{}.Request().Draw(t, "request")
	for range rapid.IntRange(0, 6).Draw(t, "mishaps") {
		randomDamage(t, req)
	}
	if rapid.IntRange(0, 3).Draw(t, "no tools") == 0 {
		req.Tools, req.ToolChoice = nil, nil
	}
	return req
}

// randomDamage breaks a conversation in one way.
func randomDamage(t *rapid.T, req *dragoman.Request) {
	ms := slices.Clone(req.Messages)
	defer func() { req.Messages = ms }()
	if len(ms) == 0 {
		return
	}
	i := rapid.IntRange(0, len(ms)-1).Draw(t, "message")
	k := rapid.IntRange(0, len(ms)-1).Draw(t, "other message")
	m := ms[i]
	m.Parts = slices.Clone(m.Parts)
	part := func() int { return rapid.IntRange(0, len(m.Parts)-1).Draw(t, "part") }
	switch rapid.IntRange(0, 14).Draw(t, "mishap") {
	case 0: // trimmed
		ms = ms[i:]
		return
	case 1:
		ms = slices.Delete(ms, i, i+1)
		return
	case 2: // duplicated
		ms = slices.Insert(ms, k, ms[i])
		return
	case 3:
		ms[i], ms[k] = ms[k], ms[i]
		return
	case 4:
		ms = slices.Insert(ms, i, gen.Options{}.Message().Draw(t, "stranger"))
		return
	case 5:
		if len(m.Parts) > 0 {
			j := part()
			m.Parts = slices.Delete(m.Parts, j, j+1)
		}
	case 6:
		if len(m.Parts) > 0 {
			ms[k].Parts = append(slices.Clip(ms[k].Parts), m.Parts[part()])
		}
	case 7: // canceled
		m.Status = codes.StatusIncomplete
	case 8: // ids lost, or all equal
		id := rapid.SampledFrom([]string{"", "call_0"}).Draw(t, "new id")
		for j, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				c := *p
				c.ID = id
				m.Parts[j] = &c
			case *dragoman.ToolResult:
				r := *p
				r.CallID = id
				m.Parts[j] = &r
			}
		}
	case 9:
		m.Parts = nil
	case 10:
		m.Parts = append(m.Parts, &dragoman.Text{Text: " "})
	case 11: // name lost
		for j, p := range m.Parts {
			if c, ok := p.(*dragoman.ToolCall); ok && !c.Hosted {
				c := *c
				c.Name = ""
				m.Parts[j] = &c
			}
		}
	case 12: // many stored media
		media := storedMedia(t, &m)
		times := 1
		if m.Origin == nil || m.Origin.Dialect != dialectname.Bedrock { // Bedrock clients know the limit
			times = rapid.SampledFrom([]int{1, 1, 6, 21}).Draw(t, "times")
		}
		m.Parts = append(m.Parts, slices.Repeat([]dragoman.Part{media}, times)...)
	case 13:
		media := storedMedia(t, &m)
		for j, p := range m.Parts {
			if r, ok := p.(*dragoman.ToolResult); ok {
				r := *r
				r.Content, r.Cache = append(slices.Clip(r.Content), media), &dragoman.CacheHint{}
				m.Parts[j] = &r
			}
		}
	case 14: // a thinking budget
		budget := int64(2048)
		req.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: &budget, Effort: req.Verbosity}
	}
	ms[i] = m
}

// storedMedia draws media that a provider stores, and sets the origin of the message
// accordingly.
func storedMedia(t *rapid.T, from *dragoman.Message) *dragoman.Media {
	m := &dragoman.Media{
		Media: rapid.SampledFrom([]string{codes.MediaImage, codes.MediaFile}).Draw(t, "kind of media"),
		MIME:  rapid.SampledFrom([]string{"", "image/png", "image/gif", "application/pdf"}).Draw(t, "type of media"),
	}
	switch at := rapid.SampledFrom([]string{"s3://b/k.png", "gs://b/k", "https://generativelanguage.googleapis.com/v1beta/files/a", "https://e/a.webp", "file-1", ""}).Draw(t, "place"); at {
	case "":
		m.MIME, m.Base64 = "image/png", "AAAA"
	case "file-1":
		m.FileID = at
	default:
		m.URL = at
	}
	switch {
	case strings.HasPrefix(m.URL, "s3:"):
		from.Origin = &dragoman.Origin{Dialect: dialectname.Bedrock}
	case strings.HasPrefix(m.URL, "gs:"), strings.Contains(m.URL, "google"):
		from.Origin = &dragoman.Origin{Dialect: dialectname.Gemini}
	}
	return m
}

// stored returns the request as stored JSON, for comparison of everything in it.
func stored(t *rapid.T, req *dragoman.Request) string {
	b, err := req.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestNormalizeIsPureAndIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req, o := anyRequest(t), anyTarget(t)
		before := stored(t, req)
		out, rep, err := history.Normalize(req, o)
		if stored(t, req) != before {
			t.Fatal("the request was changed")
		}
		if err != nil {
			if !errors.Is(err, dragoman.ErrUnsettledCalls) || o.Abandon == codes.AbandonAll {
				t.Fatal(err)
			}
			return
		}
		if len(rep.Losses) == 0 != (out == req) {
			t.Fatalf("changed: %v, report:\n%s\n%s", out != req, rep, gen.Diff(req, out))
		}
		for _, l := range rep.Losses {
			if !strings.HasPrefix(l.Path, "/messages") && l.Path != "/tools" && l.Path != "/tool_choice" && l.Path != "/reasoning/budget_tokens" {
				t.Fatalf("a loss without a path: %s", l)
			}
		}
		if second, _, err := history.Normalize(req, o); err != nil || gen.Diff(out, second) != "" {
			t.Fatalf("not deterministic: %v\n%s", err, gen.Diff(out, second))
		}
		again, rep, err := history.Normalize(out, o)
		if err != nil || again != out {
			t.Fatalf("not idempotent: %v\n%s\n%s\n%s", err, rep, gen.Diff(out, again), before)
		}
	})
}

// A message that needs no change keeps its parts and its native form.
func TestUnchangedMessageKeepsItsNativeForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req, o := anyRequest(t), anyTarget(t)
		out, _, err := history.Normalize(req, o)
		if err != nil {
			return
		}
		for i := range out.Messages {
			m := &out.Messages[i]
			if m.Native == nil {
				continue
			}
			if !slices.ContainsFunc(req.Messages, func(was dragoman.Message) bool { return reflect.DeepEqual(was, *m) }) {
				t.Fatalf("message %d has a native form, but is not an input message", i)
			}
		}
	})
}

// verdict describes what is wrong with the calls and results of a conversation, or returns "".
func verdict(ms []dragoman.Message, loose, kept bool) string {
	open := map[string]bool{}
	seen := map[string]bool{}
	waits := func() string {
		if loose {
			return ""
		}
		for id := range open {
			return fmt.Sprintf("call %q has no result after it", id)
		}
		return ""
	}
	run := false
	for i := range ms {
		if a := ms[i].Role == dragoman.RoleAssistant; a && !run {
			if s := waits(); s != "" {
				return s
			}
			clear(seen)
			run = true
		} else if !a {
			run = false
		}
		for _, p := range ms[i].Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				if p.Hosted || p.Async && loose {
					continue
				}
				if seen[p.ID] || p.ID == "" {
					return fmt.Sprintf("duplicate call %q in a turn", p.ID)
				}
				seen[p.ID], open[p.ID] = true, true
			case *dragoman.ToolResult:
				if !open[p.CallID] && !kept {
					return fmt.Sprintf("a result of %q, which is not open", p.CallID)
				}
				delete(open, p.CallID)
			default:
				if !run {
					if s := waits(); s != "" {
						return s
					}
				}
			}
		}
	}
	loose = false
	return waits()
}

func TestCallsAndResultsArePairedOneToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req, o := anyRequest(t), anyTarget(t)
		for i := range req.Messages { // parts that only one dialect understands
			for _, p := range req.Messages[i].Parts {
				switch p := p.(type) {
				case *dragoman.Opaque:
					p.CallID = ""
				case *dragoman.ToolCall:
					p.Hosted, p.Async = false, false
				case *dragoman.ToolResult:
					if p.CallID == "" {
						p.CallID = "none"
					}
				}
			}
		}
		req.PreviousResponseID, req.Extra = "", nil
		o.Abandon = codes.AbandonAll
		out, rep, err := history.Normalize(req, o)
		if err != nil {
			t.Fatal(err)
		}
		if why := verdict(out.Messages, o.Limits.LooseResults, false); why != "" {
			b, _ := out.MarshalJSON()
			t.Fatalf("%s\n%s\n%s", why, rep, b)
		}
	})
}

// A conversation that is valid for the target is returned as it is. The test uses the three dialects
// that accept any media and require no signatures.
func TestValidConversationReturnsTheSamePointer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := gen.Options{Tidy: true, Plain: true}.Request().Draw(t, "request")
		c := rapid.SampledFrom(codecs[:3]).Draw(t, "codec")
		req.Reasoning = nil // the reasoning that a budget needs is removed below
		for i := range req.Messages {
			m := &req.Messages[i]
			m.Parts = slices.DeleteFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindReasoning })
			for _, p := range m.Parts {
				switch p := p.(type) {
				case *dragoman.Text:
					p.Text += "."
				case *dragoman.Refusal:
					p.Text += "."
				}
			}
			if len(m.Parts) == 0 {
				m.Parts = []dragoman.Part{&dragoman.Text{Text: "well"}}
			}
		}
		if len(req.Tools) == 0 {
			req.Tools = []dragoman.ToolSpec{{Name: "f"}}
		}
		out, rep, err := history.Normalize(req, history.Options{Limits: c.Limits()})
		if err != nil || out != req {
			t.Fatalf("%v\n%s\n%s", err, rep, gen.Diff(req, out))
		}
	})
}

// withoutNative removes random native JSON of the generator where a replay would add content:
// bodies and messages, definitions of hosted tools, and records and ids of
// items. The test checks the rest: opaque parts, signatures, choices, settings and
// unknown fields of parts.
func withoutNative(req *dragoman.Request) {
	req.Native = nil
	if c := req.ToolChoice; c != nil && (c.Mode == codes.ChoiceOpaque || c.Mode == dragoman.ChoiceTool || c.Mode == dragoman.ChoiceRequired && c.Tools != nil) {
		req.ToolChoice = nil // an encoder refuses a forced tool that it cannot send
	}
	req.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(s dragoman.ToolSpec) bool { return s.Kind == codes.ToolHosted })
	for i := range req.Tools {
		req.Tools[i].Source = nil
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		m.Native, m.Extra = nil, nil // an unknown field may be the only content of a message
		media := func(p dragoman.Part) bool { return p.Kind() == codes.KindMedia }
		if m.Role == "critic" || m.Role != dragoman.RoleUser && slices.ContainsFunc(m.Parts, media) {
			m.Origin = nil // no dialect has this role
		}
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p dragoman.Part) bool {
			switch p := p.(type) {
			case *dragoman.Opaque:
				// Neither Chat nor system prompts have unknown blocks.
				return p.Dialect == dialectname.OpenAIChat || m.Role == dragoman.RoleSystem || m.Role == dragoman.RoleDeveloper
			case *dragoman.ToolCall:
				return p.Hosted // a hosted call is not decoded as a call
			default:
				return false
			}
		})
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.Reasoning:
				p.Details, p.ID = nil, ""
			case *dragoman.ToolCall:
				p.ItemID = ""
				p.Synthetic = true // no provider creates such ids
			case *dragoman.ToolResult:
				p.ItemID, p.Envelope = "", nil
			}
		}
	}
}

// Decision 134: after a switch of provider at any turn of any conversation, the request is
// valid for the new target.
func TestAnyConversationIsValidForAnyTarget(t *testing.T) {
	for _, c := range codecs {
		t.Run(string(c.Dialect()), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				req := anyRequest(t)
				withoutNative(req)
				o := history.Options{
					Limits: c.Limits(), Abandon: codes.AbandonAll,
					Target: targets.Target{Provider: rapid.SampledFrom([]string{"", "openai", "anthropic"}).Draw(t, "provider of the target")},
				}
				o.Target.Caps.NoPrefill = rapid.Bool().Draw(t, "no prefill")
				out, rep, err := history.Normalize(req, o)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.ContainsFunc(out.Messages, func(m dragoman.Message) bool { return len(m.Parts) > 0 }) {
					return // nothing to send
				}
				enc, err := c.EncodeRequest(out, dialect.EncodeOptions{Target: o.Target})
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range rulecheck.Request(c.Dialect(), enc.Body, rulecheck.Options{NoPrefill: o.Target.Caps.NoPrefill, MidSystem: true}) {
					b, _ := req.MarshalJSON()
					t.Errorf("%s\n%s\n%s\n%s\n%s", v, enc.Body, rep, b, enc.Report)
				}
			})
		})
	}
}
