package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// moodExtension is an extension for a server whose messages have a mood.
type moodExtension struct {
	mood *extension.Accumulator[extension.Text]
	// panics and wrong make the extension fail.
	panics, wrong bool
}

func newMoody() moodExtension {
	return moodExtension{mood: &extension.Accumulator[extension.Text]{
		Path: "/message/mood", Fold: extension.Append, Fragments: true,
		Extract: func(chunk json.RawMessage) (extension.Text, bool, error) {
			o, err := extension.NewObject(chunk)
			if err != nil {
				return nil, false, err
			}
			var mood string
			found, err := o.Read("/choices/0/delta/mood", &mood)
			return extension.Text(mood), found, err
		},
	}}
}

func (moodExtension) Info() extension.Info { return extension.Info{Name: "moody"} }

func (m moodExtension) ReadChunk(_ context.Context, x *extension.Exchange, chunk json.RawMessage) error {
	return m.mood.Read(x, chunk)
}

func (m moodExtension) ToNative(messages []dragoman.Message, native []json.RawMessage) []json.RawMessage {
	if m.panics {
		panic("no")
	}
	if m.wrong {
		return nil
	}
	return extension.ToNative(messages, native, func(m *dragoman.Message, o *extension.Object) error {
		return o.Set("mood", string(m.Role)+":"+m.Text())
	})
}

func (m moodExtension) FromNative(native []json.RawMessage, messages []dragoman.Message) []dragoman.Message {
	if m.wrong {
		return nil
	}
	return extension.FromNative(native, messages, func(o *extension.Object, m *dragoman.Message) error {
		var mood string
		if found, err := o.Read("mood", &mood); found || err != nil {
			m.Parts = append(m.Parts, &dragoman.Text{Text: " (" + mood + ")"})
			return err
		}
		if strings.Contains(string(o.JSON()), "Take a coat.") {
			m.Parts = append(m.Parts, &dragoman.Text{Text: " (seen)"})
		}
		return nil
	})
}

// A mapper gets the conversation of a request with its native form, and the one message of a
// response.
func TestX6_MappersGetNativeMessages(t *testing.T) {
	places := map[dragoman.Dialect]string{dialectname.OpenAIResponses: "input", dialectname.Gemini: "contents"}
	each(t, func(t *testing.T, codec dialect.Codec) {
		s := serve(t, codec, respond(textResponse("Take a coat.")))
		c := s.client(&provider.Client{Extensions: extensions(t, newMoody())})
		req := newRequest()
		req.Instructions = []dragoman.Part{&dragoman.Text{Text: "Be brief."}}
		req.Messages = append(req.Messages, dragoman.AssistantText("Where?"), dragoman.UserText("In Oslo."))
		resp, err := c.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Text() != "Take a coat. (seen)" {
			t.Errorf("the answer was not mapped: %q", resp.Text())
		}
		place := places[codec.Dialect()]
		if place == "" {
			place = "messages"
		}
		sent, err := extension.NewObject(s.requests()[0].body)
		if err != nil {
			t.Fatal(err)
		}
		var natives []map[string]any
		if _, err := sent.Read(place, &natives); err != nil {
			t.Fatal(err)
		}
		head := len(natives) - 3 // the instructions, where they are a message
		for i, want := range []string{"user:Do I need a coat in Oslo?", "assistant:Where?", "user:In Oslo."} {
			if head < 0 || natives[head+i]["mood"] != want {
				t.Fatalf("message %d has not the mood %q: %s", i, want, sent.JSON())
			}
		}
		if head > 0 && natives[0]["mood"] != nil {
			t.Errorf("the instructions are no message: %s", sent.JSON())
		}
	})
}

// Results that are separate messages on the wire are matched with theirs. Messages that cannot be
// matched stay unchanged.
func TestX6_MismatchedMessagesAreNotMapped(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respond(textResponse("Yes.")))
	calls := callResponse(`{"city":"Oslo"}`, `{"city":"Bergen"}`).Output[0]
	a, b := calls.ToolCalls()[0], calls.ToolCalls()[1]
	req := newRequest()
	req.Messages = append(req.Messages, calls, dragoman.ToolResults(a.ResultText("4 °C"), b.ResultText("8 °C")))
	if _, err := s.client(&provider.Client{Extensions: extensions(t, newMoody())}).Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(s.requests()[0].body, []byte(`"mood":`)); n != 4 {
		t.Errorf("%d of 4 messages were mapped: %s", n, s.requests()[0].body)
	}
	// An image in a result is a separate message in Chat, without a counterpart.
	req.Messages[2] = dragoman.ToolResults(a.Result(dragoman.Image("image/png", []byte("x"))), b.ResultText("8 °C"))
	if _, err := s.client(&provider.Client{Extensions: extensions(t, newMoody())}).Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(s.requests()[1].body, []byte(`"mood":`)) {
		t.Errorf("%s", s.requests()[1].body)
	}
	wrong := newMoody()
	wrong.wrong = true
	if resp, err := s.client(&provider.Client{Extensions: extensions(t, wrong)}).Generate(t.Context(), newRequest()); err != nil || resp.Text() != "Yes." || len(s.requests()[2].req.Messages) != 1 {
		t.Errorf("%v %q", err, resp.Text())
	}
	bad := newMoody()
	bad.panics = true
	var whose *extension.Error
	if _, err := s.client(&provider.Client{Extensions: extensions(t, bad)}).Generate(t.Context(), newRequest()); !errors.As(err, &whose) || whose.Hook != "to native" {
		t.Errorf("%v", err)
	}
}

// A dialect that joins messages and adds others may write as many as it got. They are not
// matched by their count.
func TestX6_EqualCountsAreNotEnough(t *testing.T) {
	calls := callResponse(`{"city":"Oslo"}`).Output[0]
	a := calls.ToolCalls()[0]
	photo := dragoman.ToolResults(a.Result(dragoman.Image("image/png", []byte("x"))))
	instructions := []dragoman.Part{&dragoman.Text{Text: "Be brief."}}
	for name, tc := range map[string]struct {
		instructions []dragoman.Part
		more         []dragoman.Message
	}{
		"joined messages and instructions": {instructions, []dragoman.Message{dragoman.AssistantText("One."), dragoman.AssistantText("Two."), dragoman.UserText("Go on.")}},
		"joined messages and images":       {nil, []dragoman.Message{dragoman.AssistantText("One."), calls, photo, dragoman.UserText("Go on.")}},
		"split messages and instructions":  {nil, []dragoman.Message{dragoman.SystemText("Be kind."), dragoman.AssistantText("One."), calls, photo, dragoman.UserText("Go on.")}},
	} {
		each(t, func(t *testing.T, codec dialect.Codec) {
			s := serve(t, codec, respond(textResponse("Yes.")))
			var wrong string
			e := pairing{func(m *dragoman.Message, native string) {
				for _, p := range m.Parts {
					if text, ok := p.(*dragoman.Text); ok && !strings.Contains(native, text.Text) {
						wrong = fmt.Sprintf("%s %q is not %s", m.Role, text.Text, native)
					}
				}
			}}
			req := newRequest()
			req.Instructions, req.Messages = tc.instructions, append(req.Messages, tc.more...)
			if _, err := s.client(&provider.Client{Extensions: extensions(t, e)}).Generate(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if wrong != "" {
				t.Errorf("%s: %s", name, wrong)
			}
		})
	}
}

// pairing is an extension that looks at each message and its native form.
type pairing struct {
	look func(m *dragoman.Message, native string)
}

func (pairing) Info() extension.Info { return extension.Info{Name: "pairing"} }

func (p pairing) ToNative(messages []dragoman.Message, native []json.RawMessage) []json.RawMessage {
	return extension.ToNative(messages, native, func(m *dragoman.Message, o *extension.Object) error {
		p.look(m, string(o.JSON()))
		return nil
	})
}

// The native message of a stream is accumulated from its chunks.
func TestX6_StreamedNativeMessageIsAccumulated(t *testing.T) {
	s := serve(t, openaichat.Codec{}, func(_ *server, w http.ResponseWriter, _ *http.Request, _ received) {
		for _, delta := range []string{`{"content":"Yes."}`, `{"mood":"quite "}`, `{"mood":"sure"}`} {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
	resp, err := dragoman.Collect(s.client(&provider.Client{Extensions: extensions(t, newMoody())}).Stream(t.Context(), newRequest()))
	if err != nil || resp.Text() != "Yes. (quite sure)" {
		t.Errorf("%v %q", err, resp.Text())
	}
}

// initCounter counts its initializations.
type initCounter struct {
	mu       sync.Mutex
	started  int
	settings string
	fail     bool
	info     extension.Info
}

func (s *initCounter) Info() extension.Info { return s.info }

func (s *initCounter) Initialize(_ context.Context, settings json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started++
	s.settings = string(settings)
	if s.fail {
		s.fail = false
		return errors.New("not yet")
	}
	return nil
}

func TestX3_ExtensionIsInitializedOncePerClient(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respond(textResponse("Yes.")))
	on, off := &initCounter{info: extension.Info{Name: "on"}, fail: true}, &initCounter{info: extension.Info{Name: "off", OptIn: true}}
	e := extensions(t, on, off)
	e.Config = map[string]json.RawMessage{"on": json.RawMessage(`{"a":1}`)}
	c := s.client(&provider.Client{Extensions: e})
	var whose *extension.Error
	if _, err := c.Generate(t.Context(), newRequest()); !errors.As(err, &whose) || whose.Extension != "on" || whose.Hook != "initialize" || len(s.requests()) != 0 {
		t.Errorf("%v", err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := c.Generate(context.Background(), newRequest()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if on.started != 2 || on.settings != `{"a":1}` || off.started != 0 {
		t.Errorf("it was initialised %d times, with %s; the one that is off %d times", on.started, on.settings, off.started)
	}
}
