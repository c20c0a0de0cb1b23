package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func refused(t *testing.T, what string, err error, want bool) {
	t.Helper()
	if errors.Is(err, session.ErrInvalid) != want || !want && err != nil {
		t.Errorf("%s: %v, want it refused: %t", what, err, want)
	}
}

// The first and last values that a store accepts, and those next to them.
func TestS1_BoundsOfEntriesAreExact(t *testing.T) {
	entry := func(change func(*session.Entry)) error {
		e := session.Entry{Time: now, Kind: "k", Body: json.RawMessage(`1`)}
		change(&e)
		return e.Check()
	}
	for kind, bad := range map[string]bool{
		"a": false, "z": false, "0": false, "9": false, "_": false, ".": false, "": true, "A": true,
		"`": true, "{": true, "/": true, ":": true, strings.Repeat("k", 64): false, strings.Repeat("k", 65): true,
	} {
		refused(t, "kind "+kind, entry(func(e *session.Entry) { e.Kind = kind }), bad)
	}
	for key, bad := range map[string]bool{
		" ": false, "~": false, "\u00a0": false, "\x1f": true, "\x7f": true, "\u0080": true, "\u009f": true, "\xff": true,
		strings.Repeat("k", 256): false, strings.Repeat("k", 257): true,
	} {
		refused(t, fmt.Sprintf("key %q", key), entry(func(e *session.Entry) { e.Key = key }), bad)
	}
	for year, bad := range map[int]bool{1899: true, 1900: false, 9999: false, 10000: true} {
		at := time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)
		refused(t, fmt.Sprint("year ", year), entry(func(e *session.Entry) { e.Time = at }), bad)
		info := session.Info{ID: "s", Created: at}
		refused(t, fmt.Sprint("a session of the year ", year), info.Check(), bad)
	}
	body := []byte(`"` + strings.Repeat("a", storage.MaxBody-2) + `"`)
	refused(t, "the largest body", entry(func(e *session.Entry) { e.Body = body }), false)
	refused(t, "a larger body", entry(func(e *session.Entry) { e.Body = append(body, ' ') }), true)
}

func TestS1_BoundsOfSessionsAreExact(t *testing.T) {
	for id, bad := range map[string]bool{
		"a": false, "z": false, "A": false, "Z": false, "0": false, "9": false, "a._:-": false, "": true,
		"@": true, "[": true, "`": true, "{": true, "/": true, ":": true, "-a": true, "a/": true, "a@": true, "a[": true, "a`": true, "a{": true, "a;": true,
		strings.Repeat("i", 128): false, strings.Repeat("i", 129): true,
	} {
		refused(t, fmt.Sprintf("id %q", id), session.CheckID(id), bad)
	}
	for title, bad := range map[string]bool{strings.Repeat("t", 1024): false, strings.Repeat("t", 1025): true} {
		info := session.Info{ID: "s", Created: now, Title: title}
		refused(t, fmt.Sprint("a title of bytes ", len(title)), info.Check(), bad)
	}
	for at, bad := range map[int64]bool{-1: true, 0: false, 1 << 53: false, 1<<53 + 1: true} {
		info := session.Info{ID: "s", Created: now, Parent: "p", ParentSeq: at}
		refused(t, fmt.Sprint("a branch at ", at), info.Check(), bad)
	}
	orphan := session.Info{ID: "s", Created: now, ParentSeq: 1}
	refused(t, "a branch without a parent", orphan.Check(), true)
}

func TestDecision85_MediaFromMinAttachmentOnIsStoredApart(t *testing.T) {
	s := created(t, &session.Memory{})
	for name, media := range map[string]func(n int) *dragoman.Media{
		"base64": func(n int) *dragoman.Media {
			return &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: strings.Repeat("A", n)}
		},
		"text": func(n int) *dragoman.Media {
			return &dragoman.Media{Media: codes.MediaFile, MIME: "text/plain", Text: strings.Repeat("t", n)}
		},
		"data URL": func(n int) *dragoman.Media {
			return &dragoman.Media{Media: codes.MediaImage, URL: "data:" + strings.Repeat("u", n-5)}
		},
		"other URL": func(n int) *dragoman.Media {
			return &dragoman.Media{Media: codes.MediaImage, URL: "https:" + strings.Repeat("u", n-6)}
		},
	} {
		for n, want := range map[int]bool{1<<10 - 1: false, 1 << 10: name != "other URL"} {
			ref, err := s.Attach(t.Context(), media(n))
			if err != nil || (ref.Attachment != "") != want {
				t.Errorf("%s of %d bytes: %+v %v", name, n, ref, err)
			}
			if !want {
				continue
			}
			back, err := s.Expand(t.Context(), []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{ref}}})
			if err != nil || *back[0].Parts[0].(*dragoman.Media) != *media(n) {
				t.Errorf("%s does not come back: %v", name, err)
			}
		}
	}
}

// A message may refer to new content before content that the session already has.
func TestDecision85_NewAttachmentsBeforeKnownOnesAreStored(t *testing.T) {
	s := created(t, &session.Memory{})
	if _, err := s.Attach(t.Context(), picture(1, 5000)); err != nil {
		t.Fatal(err)
	}
	save(t, s, dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{picture(2, 5000), picture(1, 5000)}})
	loaded, _, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Expand(t.Context(), loaded); err != nil {
		t.Error(err)
	}
}

func TestDecision85_AlteredAttachmentsAreAnError(t *testing.T) {
	store := &session.Memory{}
	s := created(t, store)
	ref, err := s.Attach(t.Context(), picture(1, 5000))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := session.Export(t.Context(), store, s.ID(), &out); err != nil {
		t.Fatal(err)
	}
	content := picture(1, 5000).Base64
	altered := strings.Replace(out.String(), content, content[:100]+"AAAA"+content[104:], 1)
	other := &session.Memory{}
	if _, err := session.Import(t.Context(), other, strings.NewReader(altered), "altered"); err != nil {
		t.Fatal(err)
	}
	s, err = session.Open(t.Context(), other, "altered")
	if err != nil {
		t.Fatal(err)
	}
	ask := []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{ref}}}
	for range 2 { // it is not cached either
		if _, err := s.Expand(t.Context(), ask); !errors.Is(err, session.ErrCorrupt) {
			t.Errorf("altered content is used: %v", err)
		}
	}
}

func TestX9_ElementThatIsNotAMessageIsRefused(t *testing.T) {
	for name, element := range map[string]string{
		"a list":   `[{"role":"user","content":"q"}]`,
		"a number": `7`,
		"no JSON":  `{"role":`,
	} {
		s := created(t, &session.Memory{})
		save(t, s, pair("q1", "r1")...)
		w := on(t, openaichat.Codec{}, step{"make", func(in extension.ActionInput) (extension.ActionResult, error) {
			return extension.ActionResult{Native: append(in.Native[:1:1], json.RawMessage(element))}, nil
		}})
		if err := s.Act(t.Context(), w, session.Action{ID: "make"}); !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), element[:min(len(element), 20)]) {
			t.Errorf("%s: %v", name, err)
		}
		if got := forWire(t, s, w); got != "q1 r1" {
			t.Errorf("%s: the model is sent %s", name, got)
		}
	}
}

// duplicatingCodec is a codec that reads an element with the text "twice" as two messages.
type duplicatingCodec struct{ openaichat.Codec }

func (c duplicatingCodec) DecodeRequest(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	req, rep, err := c.Codec.DecodeRequest(body, o)
	if err == nil && bytes.Contains(body, []byte("twice")) {
		req.Messages = append(req.Messages, req.Messages...)
	}
	return req, rep, err
}

func TestX9_ElementThatIsTwoMessagesIsRefused(t *testing.T) {
	s := created(t, &session.Memory{})
	save(t, s, pair("q1", "r1")...)
	w := on(t, duplicatingCodec{}, step{"make", func(in extension.ActionInput) (extension.ActionResult, error) {
		return extension.ActionResult{Native: append(in.Native[:1:1], json.RawMessage(`{"role":"user","content":"twice"}`))}, nil
	}})
	if err := s.Act(t.Context(), w, session.Action{ID: "make"}); !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "exactly one message") {
		t.Errorf("%v", err)
	}
}

// The policy of a run knows the model of an action by its provider and name.
func TestP1_PolicySeesTheModelNameOfActions(t *testing.T) {
	for provider, want := range map[string]string{"p": "p/m", "": "m"} {
		s := created(t, &session.Memory{})
		save(t, s, append(pair("q1", "r1"), pair("q2", "r2")...)...)
		w := on(t, openaichat.Codec{}, extension.Compact{})
		w.w.Target.Provider, w.answers = provider, []string{"short"}
		var asked string
		ctx := modelcall.WithModelGate(t.Context(), func(_ context.Context, model string) error {
			asked = model
			return nil
		})
		if err := s.Act(ctx, w, session.Action{ID: extension.CompactID, Params: json.RawMessage(`{"keep":2,"summarize":true}`)}); err != nil || asked != want {
			t.Errorf("the policy was asked about %q, want %q; %v", asked, want, err)
		}
	}
}

func TestL14_CallContinuesSuspendedAttempt(t *testing.T) {
	s := created(t, &session.Memory{})
	attempts := func(continues, want int) {
		t.Helper()
		in := tool.Intent{CallRef: tool.CallRef{Run: "r", Turn: 1, CallID: "c"}, Continues: continues}
		if _, err := s.Begin(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if prior, err := s.Recall(t.Context(), in.CallRef); err != nil || prior.Attempts != want {
			t.Errorf("%d attempts, want %d; %v", prior.Attempts, want, err)
		}
	}
	attempts(0, 1)
	attempts(0, 1) // it does not run twice
	attempts(1, 2) // it goes on from the first attempt
	attempts(1, 2)
}

func TestS1_ExportedLineLengthIsLimited(t *testing.T) {
	store := &session.Memory{}
	s := created(t, store)
	save(t, s, pair("q", "r")...)
	var out bytes.Buffer
	if err := session.Export(t.Context(), store, s.ID(), &out); err != nil {
		t.Fatal(err)
	}
	const most = storage.MaxBody + 64<<10
	header, entries, _ := strings.Cut(out.String(), "\n")
	for extra, bad := range []bool{false, true} { // white space counts
		padding := strings.Repeat(" ", most-len(header)-1+extra)
		_, err := session.Import(t.Context(), &session.Memory{}, io.MultiReader(strings.NewReader(header), strings.NewReader(padding), strings.NewReader("\n"+entries)), "")
		refused(t, fmt.Sprint("a line with bytes over the bound: ", extra), err, bad)
	}
}

func compactable(t *testing.T) *wireModel {
	return on(t, openaichat.Codec{}, step{"drop", dropFirst})
}

// reimported returns a session with one change in its exported form.
func reimported(t *testing.T, store session.Store, id, old, replacement string) *session.Session {
	t.Helper()
	var out bytes.Buffer
	if err := session.Export(t.Context(), store, id, &out); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), old) != 1 {
		t.Fatalf("%q is not once in %s", old, out.String())
	}
	other := &session.Memory{}
	if _, err := session.Import(t.Context(), other, strings.NewReader(strings.Replace(out.String(), old, replacement, 1)), "altered"); err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), other, "altered")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestS5_UnreadableNativeHistoriesAreErrors(t *testing.T) {
	store := &session.Memory{}
	s, w := created(t, store), compactable(t)
	save(t, s, append(pair("q1", "r1"), pair("q2", "r2")...)...)
	if err := s.Act(t.Context(), w, session.Action{ID: "drop"}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		old, replacement string
		want             func(error) bool
	}{
		"a newer version": {`"v":1,"covers":4`, `"v":9,"covers":4`, func(err error) bool {
			var newer *storage.Newer
			return errors.As(err, &newer)
		}},
		"a negative count": {`"covers":4`, `"covers":-1`, func(err error) bool { return errors.Is(err, session.ErrCorrupt) }},
		"other messages":   {`"covers":4`, `"covers":"x"`, func(err error) bool { return errors.Is(err, session.ErrCorrupt) }},
	} {
		s := reimported(t, store, s.ID(), c.old, c.replacement)
		if _, err := s.MessagesFor(t.Context(), w.w.Target.Origin(), w.w.Codec.Limits().Replay.Messages); !c.want(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A native history may replace no messages: it comes before the first one.
func TestS5_NativeHistoryOfEmptyConversationIsUsed(t *testing.T) {
	s := created(t, &session.Memory{})
	w := on(t, openaichat.Codec{}, step{"begin", func(extension.ActionInput) (extension.ActionResult, error) {
		return extension.ActionResult{Native: []json.RawMessage{json.RawMessage(`{"role":"user","content":"before"}`)}}, nil
	}})
	if err := s.Act(t.Context(), w, session.Action{ID: "begin"}); err != nil {
		t.Fatal(err)
	}
	save(t, s, pair("q1", "r1")...)
	if got := forWire(t, s, w); got != "before q1 r1" {
		t.Errorf("the model is sent %s", got)
	}
}

func TestS3_ImportErrorCountsEntries(t *testing.T) {
	store := &session.Memory{}
	s := created(t, store)
	save(t, s, append(pair("q1", "r1"), pair("q2", "r2")...)...)
	var out bytes.Buffer
	if err := session.Export(t.Context(), store, s.ID(), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(out.String(), "\n")
	_, err := session.Import(t.Context(), &session.Memory{}, strings.NewReader(strings.Join(lines[:4], "")), "")
	if err == nil || !strings.Contains(err.Error(), "announces 4 entries, but there are only 3") {
		t.Errorf("%v", err)
	}
}

func TestS1_LongResultsAreInTheJournal(t *testing.T) {
	s := created(t, &session.Memory{})
	in := tool.Intent{CallRef: tool.CallRef{Run: "r", Turn: 1, CallID: "c"}}
	if _, err := s.Begin(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("long ", 1000)
	if err := s.End(t.Context(), in, &dragoman.ToolResult{CallID: "c", Content: []dragoman.Part{&dragoman.Text{Text: text}}}); err != nil {
		t.Fatal(err)
	}
	if prior, err := s.Recall(t.Context(), in.CallRef); err != nil || prior.Result.Content[0].(*dragoman.Text).Text != text {
		t.Errorf("%+v %v", prior, err)
	}
}

func TestS3_BranchInheritsTitle(t *testing.T) {
	store := &session.Memory{}
	s, err := session.Create(t.Context(), store, session.Info{Title: "trip"})
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"": "trip", "other": "other"} {
		b, err := s.Branch(t.Context(), 0, session.Info{Title: given})
		if err != nil {
			t.Fatal(err)
		}
		if info, err := store.Info(t.Context(), b.ID()); err != nil || info.Title != want {
			t.Errorf("the branch has the title %q, want %q; %v", info.Title, want, err)
		}
	}
}

func TestS3_LastReadsAcrossARewindWithoutLaterMessages(t *testing.T) {
	s := created(t, &session.Memory{})
	save(t, s, append(pair("q1", "r1"), pair("q2", "r2")...)...)
	if err := s.Rewind(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if err := s.SetMetadata(t.Context(), json.RawMessage(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]int{-1: 2, 0: 2, 1: 1, 2: 2, 3: 2} {
		if got, err := s.Last(t.Context(), n); err != nil || len(got) != want {
			t.Errorf("the last %d messages are %d, want %d; %v", n, len(got), want, err)
		}
	}
}

func TestDecision85_ReopenedSessionStoresContentOnce(t *testing.T) {
	store := &session.Memory{}
	s := created(t, store)
	save(t, s, dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{picture(1, 5000)}})
	again, err := session.Open(t.Context(), store, s.ID())
	if err != nil {
		t.Fatal(err)
	}
	save(t, again, dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{picture(1, 5000), picture(2, 5000)}})
	if n, _ := stored(t, store, s.ID()); n != 2 {
		t.Errorf("%d attachments are stored, want 2", n)
	}
	loaded, _, err := again.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Expand(t.Context(), loaded); err != nil {
		t.Error(err)
	}
}

// unreadableStore is a store that fails to read entries of one kind.
type unreadableStore struct {
	session.Store
	kind string
}

var errDisk = errors.New("disk failure")

func (f *unreadableStore) Read(ctx context.Context, id string, q session.Query) iter.Seq2[session.Entry, error] {
	if f.kind != "" && slices.Contains(q.Kinds, f.kind) {
		return session.Fail[session.Entry](errDisk)
	}
	return f.Store.Read(ctx, id, q)
}

func TestS1_ErrorsOfReadingAreReported(t *testing.T) {
	store := &unreadableStore{Store: &session.Memory{}}
	s := created(t, store)
	w := compactable(t)
	save(t, s, pair("q1", "r1")...)
	origin, match := w.w.Target.Origin(), w.w.Codec.Limits().Replay.Messages
	for kind, do := range map[string]func() error{
		"attachment": func() error {
			return s.Save(t.Context(), []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{picture(1, 5000)}}}, nil)
		},
		"native": func() error {
			_, err := s.MessagesInPlaceOf(t.Context(), pair("q1", "r1"), origin, match)
			return err
		},
		"message": func() error {
			_, err := s.ActionModel(t.Context(), chainOf(w, compactable(t)), "")
			return err
		},
		"meta": func() error {
			return s.Act(t.Context(), w, session.Action{ID: "drop"})
		},
	} {
		store.kind = kind
		if err := do(); !errors.Is(err, errDisk) {
			t.Errorf("reading entries of kind %s: %v", kind, err)
		}
		store.kind = ""
		if err := do(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
	loaded, _, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Expand(t.Context(), loaded); err != nil {
		t.Errorf("after a failed save: %v", err)
	}
}

func TestS3_EntriesEndWhereThisWriterKnowsTheLog(t *testing.T) {
	store := &session.Memory{}
	s := created(t, store)
	save(t, s, pair("q1", "r1")...)
	other, err := session.Open(t.Context(), store, s.ID())
	if err != nil {
		t.Fatal(err)
	}
	save(t, other, pair("q2", "r2")...)
	for until, want := range map[int64]int{-1: 2, 0: 2, 1: 1, 2: 2, 3: 2, 4: 2} {
		n := 0
		for _, err := range s.Entries(t.Context(), session.Query{Until: until}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != want {
			t.Errorf("until %d there are %d entries, want %d", until, n, want)
		}
	}
}

// streaming is a model that streams one usage and fails then.
type streaming struct{ *wireModel }

func (streaming) Stream(context.Context, *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		if yield(&dragoman.ResponseEnd{Usage: dragoman.Usage{Input: dragoman.Counted(7)}}, nil) {
			yield(&dragoman.StreamError{Usage: dragoman.Usage{Input: dragoman.Counted(5)}}, nil)
		}
	}
}

// streamingAction is an extension whose action streams from the model.
type streamingAction struct{ events *[]error }

func (streamingAction) Info() extension.Info { return extension.Info{Name: "asking"} }

func (a streamingAction) Actions(extension.Env) []extension.Action {
	return []extension.Action{{ID: "ask", Run: func(ctx context.Context, in extension.ActionInput) (extension.ActionResult, error) {
		*a.events = nil
		for _, err := range in.Runtime.Model.Stream(ctx, &dragoman.Request{}) {
			*a.events = append(*a.events, err)
		}
		return extension.ActionResult{}, nil
	}}}
}

// The policy also decides on model calls that stream, and the run counts them.
func TestP1_PolicyAppliesToStreamingActions(t *testing.T) {
	denied := errors.New("denied")
	for _, gate := range []error{nil, denied} {
		var events []error
		var spent int64
		s := created(t, &session.Memory{})
		ctx := modelcall.WithModelGate(t.Context(), func(context.Context, string) error { return gate })
		ctx = modelcall.WithMeter(ctx, func(u dragoman.Usage) { spent += u.Input.N })
		if err := s.Act(ctx, streaming{on(t, openaichat.Codec{}, streamingAction{&events})}, session.Action{ID: "ask"}); err != nil {
			t.Fatal(err)
		}
		if gate == nil && (!slices.Equal(events, []error{nil, nil}) || spent != 12) || gate != nil && (!slices.Equal(events, []error{denied}) || spent != 0) {
			t.Errorf("gate %v: events %v, %d tokens", gate, events, spent)
		}
	}
}

func TestT13_TicketsAreCheckedBeforeTheyAreStored(t *testing.T) {
	for id, bad := range map[string]bool{"": true, "t": false, strings.Repeat("t", 256): false, strings.Repeat("t", 257): true, "a\nb": true} {
		refused(t, fmt.Sprintf("ticket id %q", id), storekit.CheckTicketID(id), bad)
	}
	change := func(state string, expires time.Time) func(*tool.StoredTicket) error {
		return func(s *tool.StoredTicket) error {
			s.State, s.Ticket.Expires = state, expires
			return nil
		}
	}
	_, raw, err := storekit.ChangeTicket("t", "", change("waiting", now))
	if err != nil || raw == nil {
		t.Fatalf("a new ticket: %s %v", raw, err)
	}
	back, _, err := storekit.ChangeTicket("t", string(raw), func(*tool.StoredTicket) error { return nil })
	if err != nil || back.State != "waiting" || !back.Ticket.Expires.Equal(now) {
		t.Errorf("read again: %+v %v", back, err)
	}
	if _, _, err := storekit.ChangeTicket("t", "{", change("waiting", now)); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("not JSON: %v", err)
	}
	if _, raw, err := storekit.ChangeTicket("t", "", change("", now)); err != nil || raw != nil {
		t.Errorf("without a state: %s %v", raw, err)
	}
	if _, raw, err := storekit.ChangeTicket("t", "", func(*tool.StoredTicket) error { return errDisk }); !errors.Is(err, errDisk) || raw != nil {
		t.Errorf("a change that fails: %s %v", raw, err)
	}
	_, _, err = storekit.ChangeTicket("t", "", change("waiting", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)))
	refused(t, "a time that no store can hold", err, true)
}
