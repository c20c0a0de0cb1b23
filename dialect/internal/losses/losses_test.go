package losses_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// The tests below encode the fields of a response other than its content for every dialect, whole
// and streamed. Each field is written or reported.

// bothWays encodes a response whole and as a stream.
func bothWays(t *testing.T, c dialect.Codec, resp *dragoman.Response, check func(t *testing.T, body string, rep dragoman.Report)) {
	t.Helper()
	o := dialect.EncodeOptions{Seed: "s", StreamUsage: true}
	t.Run(string(c.Dialect())+" whole", func(t *testing.T) {
		enc, err := c.EncodeResponse(resp, o)
		if err != nil {
			t.Fatal(err)
		}
		check(t, string(enc.Body), enc.Report)
	})
	t.Run(string(c.Dialect())+" streamed", func(t *testing.T) {
		body, rep, err := crosstest.Streamed(c, eventsOf(resp), o)
		if err != nil {
			t.Fatal(err)
		}
		check(t, string(body), rep)
	})
}

// eventsOf returns a response as a stream without deltas.
func eventsOf(resp *dragoman.Response) []dragoman.Event {
	head := *resp
	head.Output, head.Stop, head.Usage, head.Alternatives = nil, dragoman.Stop{}, dragoman.Usage{}, nil
	evs := []dragoman.Event{&dragoman.ResponseStart{Response: head}}
	n := 0
	for i := range resp.Output {
		m := &resp.Output[i]
		header := *m
		header.Parts = nil
		for j, p := range m.Parts {
			start := &dragoman.PartStart{Index: n, Message: i, Part: p}
			if j == 0 {
				start.Header = &header
			}
			evs = append(evs, start, &dragoman.PartEnd{Index: n, Part: p})
			n++
		}
	}
	return append(evs, &dragoman.ResponseEnd{Stop: resp.Stop, Usage: resp.Usage, Response: head})
}

// reported returns the losses at a pointer.
func reported(rep dragoman.Report, path string) (at []dragoman.Loss) {
	for _, l := range rep.Losses {
		if l.Path == path {
			at = append(at, l)
		}
	}
	return at
}

// reportedOnce checks that path has exactly one loss, of the given kind and severity info.
func reportedOnce(t *testing.T, rep dragoman.Report, kind dragoman.LossKind, path string) {
	t.Helper()
	if at := reported(rep, path); len(at) != 1 || at[0].Kind != kind || at[0].Severity != dragoman.Info {
		t.Errorf("want one %s (info) at %s:\n%s", kind, path, rep)
	}
}

func notReported(t *testing.T, rep dragoman.Report, path string) {
	t.Helper()
	if at := reported(rep, path); len(at) > 0 {
		t.Errorf("at %s:\n%s", path, rep)
	}
}

func TestR11_StopDetailsAreWrittenOrReported(t *testing.T) {
	for _, c := range crosstest.Codecs {
		for _, reason := range []dragoman.StopReason{dragoman.StopEnd, dragoman.StopLength, dragoman.StopRefusal} {
			resp := crosstest.FullResponse()
			resp.Stop = dragoman.Stop{Reason: reason, Details: &dragoman.Native{Format: "nobody.why", JSON: []byte(`{"why":"because"}`)}}
			bothWays(t, c, resp, func(t *testing.T, body string, rep dragoman.Report) {
				reportedOnce(t, rep, dragoman.Dropped, "/stop/details")
			})
		}
	}
}

func TestR11_DetailsOfReplacedStopAreReported(t *testing.T) {
	// A blocked call replaces the stop reason, and with it the details that
	// explain the original one.
	for _, c := range crosstest.Codecs {
		resp := crosstest.FullResponse()
		resp.Stop = dragoman.Stop{Reason: dragoman.StopToolCalls, Details: &dragoman.Native{Format: "nobody.why", JSON: []byte(`{"why":"because"}`)}}
		resp.Output[0].Parts = []dragoman.Part{&dragoman.ToolCall{
			ID: "c", Name: "f", Payload: codes.PayloadObject, Arguments: "{}", Problem: &dragoman.CallProblem{Code: codes.ProblemStopped, Offset: -1},
		}}
		bothWays(t, c, resp, func(t *testing.T, body string, rep dragoman.Report) {
			reportedOnce(t, rep, dragoman.Dropped, "/stop/details")
		})
	}
}

func TestR11_StopDetailsReturnToTheirDialect(t *testing.T) {
	const why = `{"type":"refusal","category":"bio"}`
	resp := crosstest.FullResponse()
	resp.Origin = &dragoman.Origin{Dialect: dialectname.Anthropic}
	resp.Stop = dragoman.Stop{Reason: dragoman.StopRefusal, Details: &dragoman.Native{Format: "anthropic.messages.stop_details", JSON: []byte(why)}}
	for _, c := range crosstest.Codecs {
		bothWays(t, c, resp, func(t *testing.T, body string, rep dragoman.Report) {
			if c.Dialect() != dialectname.Anthropic {
				reportedOnce(t, rep, dragoman.Dropped, "/stop/details")
				return
			}
			if notReported(t, rep, "/stop/details"); !strings.Contains(body, why) {
				t.Errorf("not written: %s", body)
			}
		})
	}
}

func TestR11_SynthesizedIDIsReportedOnce(t *testing.T) {
	bare := crosstest.FullResponse()
	bare.ID = ""
	for _, c := range crosstest.Codecs {
		bothWays(t, c, bare, func(t *testing.T, body string, rep dragoman.Report) {
			switch c.Dialect() {
			case dialectname.Ollama, dialectname.Bedrock: // responses have no id
				notReported(t, rep, "/id")
			default:
				reportedOnce(t, rep, dragoman.Synthesized, "/id")
			}
		})
		bothWays(t, c, crosstest.FullResponse(), func(t *testing.T, body string, rep dragoman.Report) {
			switch c.Dialect() {
			case dialectname.OpenAIResponses: // item ids, and one that clients may send to OpenAI
				reportedOnce(t, rep, dragoman.Synthesized, "/id")
			case dialectname.Ollama, dialectname.Bedrock:
				reportedOnce(t, rep, dragoman.Dropped, "/id")
			default:
				notReported(t, rep, "/id")
			}
		})
	}
}

func TestR11_SynthesizedTimeIsReported(t *testing.T) {
	timeless := crosstest.FullResponse()
	timeless.Created = time.Time{}
	for _, c := range crosstest.Codecs {
		bothWays(t, c, timeless, func(t *testing.T, body string, rep dragoman.Report) {
			switch c.Dialect() {
			case dialectname.OpenAIChat, dialectname.OpenAIResponses, dialectname.Ollama:
				reportedOnce(t, rep, dragoman.Synthesized, "/created")
			default: // these dialects require no time
				notReported(t, rep, "/created")
			}
		})
		bothWays(t, c, crosstest.FullResponse(), func(t *testing.T, body string, rep dragoman.Report) {
			for _, l := range reported(rep, "/created") {
				if l.Kind == dragoman.Synthesized {
					t.Errorf("the time was known: %s", l)
				}
			}
		})
	}
}

func TestR11_DroppedItemIDIsReported(t *testing.T) {
	resp := crosstest.FullResponse()
	resp.Origin = &dragoman.Origin{Dialect: dialectname.OpenAIResponses}
	own := &dragoman.Origin{Dialect: dialectname.OpenAIResponses}
	resp.Output = []dragoman.Message{
		{Role: dragoman.RoleAssistant, Origin: own, Parts: []dragoman.Part{&dragoman.Text{Text: "a"}}, Extra: &dragoman.Extra{
			Dialect: dialectname.OpenAIResponses, Fields: []dragoman.Field{{Path: "/id", Value: []byte(`"msg_1"`)}},
		}},
		{Role: dragoman.RoleAssistant, Origin: own, Parts: []dragoman.Part{
			&dragoman.ToolCall{ID: "c", ItemID: "fc_1", Name: "f", Payload: codes.PayloadObject, Arguments: "{}"},
		}},
	}
	resp.Stop.Reason = dragoman.StopToolCalls
	for _, c := range crosstest.Codecs {
		bothWays(t, c, resp, func(t *testing.T, body string, rep dragoman.Report) {
			if c.Dialect() == dialectname.OpenAIResponses {
				for _, id := range []string{"msg_1", "fc_1"} {
					if !strings.Contains(body, `"`+id+`"`) {
						t.Errorf("%s is missing: %s", id, body)
					}
				}
				if len(rep.Losses) > 0 && slices.ContainsFunc(rep.Losses, func(l dragoman.Loss) bool { return strings.Contains(l.Path, "id") }) {
					t.Errorf("%s", rep)
				}
				return
			}
			reportedOnce(t, rep, dragoman.Dropped, "/output/0/id")
			reportedOnce(t, rep, dragoman.Dropped, "/output/1/parts/0/item_id")
		})
	}
}

func TestR11_FailedResponseReportsWhatItOmits(t *testing.T) {
	failed := crosstest.FullResponse()
	failed.Stop = dragoman.Stop{Reason: dragoman.StopError}
	failed.Error = &dragoman.APIError{Class: dragoman.ErrorServer, Message: "boom"}
	failed.ServiceTier = "flex"
	for _, c := range crosstest.Codecs {
		for _, output := range []bool{true, false} {
			resp := *failed
			if !output {
				resp.Output = nil
			}
			enc, err := c.EncodeResponse(&resp, dialect.EncodeOptions{Seed: "s"})
			if err != nil || !strings.Contains(string(enc.Body), "boom") && len(reported(enc.Report, "/error")) == 0 {
				t.Errorf("%s: the error is missing: %s, %v", c.Dialect(), enc.Body, err)
			}
			if c.Dialect() == dialectname.OpenAIResponses || c.Dialect() == dialectname.OpenAIChat && output {
				continue // these can write the rest, or report the error
			}
			reportedOnce(t, enc.Report, dragoman.Moved, "/error")
			for _, path := range []string{"/id", "/model", "/created", "/usage", "/service_tier"} {
				reportedOnce(t, enc.Report, dragoman.Dropped, path)
			}
			if at := reported(enc.Report, "/output"); output != (len(at) == 1 && at[0].Severity == dragoman.Serious) {
				t.Errorf("%s: output: %s", c.Dialect(), enc.Report)
			}
		}
	}
}

func TestR11_UsageOfFailedStreamIsWrittenOrReported(t *testing.T) {
	head := *crosstest.FullResponse()
	head.Output, head.Usage = nil, dragoman.Usage{}
	for _, c := range crosstest.Codecs {
		body, rep, err := crosstest.Streamed(c, []dragoman.Event{
			&dragoman.ResponseStart{Response: head},
			&dragoman.StreamError{Err: &dragoman.APIError{Class: dragoman.ErrorServer, Message: "boom"}, Usage: dragoman.Usage{Input: dragoman.Counted(4711)}},
		}, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(body), "4711") {
			reportedOnce(t, rep, dragoman.Dropped, "/usage")
		}
	}
}

func TestR11_ServiceTierIsTranslatedOrReported(t *testing.T) {
	// The tier that is written, by target; empty if the target has no tier for it.
	for tier, want := range map[string]map[dragoman.Dialect]string{
		"priority":  {dialectname.OpenAIChat: "priority", dialectname.OpenAIResponses: "priority", dialectname.Anthropic: "priority", dialectname.Gemini: "priority", dialectname.Bedrock: "priority"},
		"default":   {dialectname.OpenAIChat: "default", dialectname.OpenAIResponses: "default", dialectname.Anthropic: "standard", dialectname.Gemini: "standard", dialectname.Bedrock: "default"},
		"standard":  {dialectname.OpenAIChat: "default", dialectname.OpenAIResponses: "default", dialectname.Anthropic: "standard", dialectname.Gemini: "standard", dialectname.Bedrock: "default"},
		"batch":     {dialectname.Anthropic: "batch"},
		"on_demand": {},
	} {
		resp := crosstest.FullResponse()
		resp.ServiceTier = tier
		for _, c := range crosstest.Codecs {
			bothWays(t, c, resp, func(t *testing.T, body string, rep dragoman.Report) {
				word := want[c.Dialect()]
				if word != "" && !strings.Contains(body, `"`+word+`"`) {
					t.Errorf("%s is not written as %s: %s", tier, word, body)
				}
				switch word {
				case tier:
					notReported(t, rep, "/service_tier")
				case "":
					reportedOnce(t, rep, dragoman.Dropped, "/service_tier")
					if strings.Contains(body, tier) {
						t.Errorf("%s is written: %s", tier, body)
					}
				default:
					reportedOnce(t, rep, dragoman.Lowered, "/service_tier")
				}
			})
		}
	}
}

func TestR11_UnknownServiceTierReturnsToItsDialect(t *testing.T) {
	for _, c := range crosstest.Codecs {
		if d := c.Dialect(); d == dialectname.Ollama || d == dialectname.Bedrock || d == "cohere.chat" {
			continue // two have no service tier, the third only known ones
		}
		resp := crosstest.FullResponse()
		resp.ServiceTier, resp.Origin = "on_demand", &dragoman.Origin{Dialect: c.Dialect()}
		bothWays(t, c, resp, func(t *testing.T, body string, rep dragoman.Report) {
			if notReported(t, rep, "/service_tier"); !strings.Contains(body, `"on_demand"`) {
				t.Errorf("not written: %s", body)
			}
		})
	}
}
