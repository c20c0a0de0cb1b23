package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/session"
)

const (
	header  = `{"dragoman_session":1,"id":"s","created":"2026-02-03T04:05:06.789012Z","entries":1}` + "\n"
	message = `{"seq":1,"time":"2026-02-03T04:05:07Z","kind":"message","body":{"v":1,"role":"user","parts":[{"type":"text","text":"a"}]}}` + "\n"
)

// Other programs, and later versions of this one, read exported sessions.
func TestS3_ExportFormat(t *testing.T) {
	store := &session.Memory{}
	info, err := session.Import(t.Context(), store, strings.NewReader("\n"+header+"\r\n"+strings.TrimSpace(message)), "")
	if err != nil || info.ID != "s" || info.Head != 1 {
		t.Fatalf("%+v %v", info, err)
	}
	s, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	if messages, _, err := s.Load(t.Context()); err != nil || len(messages) != 1 || messages[0].Text() != "a" {
		t.Errorf("%v %v", messages, err)
	}
	var out bytes.Buffer
	if err := session.Export(t.Context(), store, "s", &out); err != nil || out.String() != header+message {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := session.Export(t.Context(), store, "s", failing{}); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestS3_InvalidImportNamesItsLine(t *testing.T) {
	edit := func(old, with string) string { return header + strings.Replace(message, old, with, 1) }
	for name, tc := range map[string]struct {
		text string
		want error
		line string
	}{
		"nothing":                        {"", session.ErrInvalid, "line 1"},
		"blank lines":                    {"\n\n", session.ErrInvalid, "line 3"},
		"another file":                   {`{"role":"user"}` + "\n", session.ErrInvalid, "line 1"},
		"no JSON":                        {"hello\n", session.ErrInvalid, "line 1"},
		"a newer version":                {strings.Replace(header, ":1,", ":2,", 1) + "anything", session.ErrNewer, ""},
		"a newer version's lines":        {strings.Replace(header, `:1,"id"`, `:7,"new":[],"id"`, 1), session.ErrNewer, ""},
		"no id":                          {strings.Replace(header, `"s"`, `""`, 1) + message, session.ErrInvalid, "line 1"},
		"too few":                        {strings.Replace(header, `"entries":1`, `"entries":2`, 1) + message, session.ErrInvalid, "line 3"},
		"too many":                       {header + message + strings.Replace(message, `:1,`, `:2,`, 1), session.ErrInvalid, "line 3"},
		"cut":                            {header + message[:len(message)/2], session.ErrInvalid, "line 2"},
		"out of order":                   {edit(`"seq":1`, `"seq":2`), session.ErrInvalid, "line 2"},
		"no time":                        {edit(`"time":"2026-02-03T04:05:07Z",`, ``), session.ErrInvalid, "line 2"},
		"no kind":                        {edit(`"kind":"message"`, `"kind":"?"`), session.ErrInvalid, "line 2"},
		"no body":                        {edit(`"body":`, `"other":`), session.ErrInvalid, "line 2"},
		"no message":                     {edit(`"role":"user"`, `"role":7`), session.ErrCorrupt, "line 2"},
		"a newer message":                {edit(`"body":{"v":1`, `"body":{"v":9`), session.ErrNewer, "line 2"},
		"a duplicate field":              {edit(`"seq":1`, `"seq":1,"seq":1`), session.ErrInvalid, "line 2"},
		"a rewind ahead":                 {header + `{"seq":1,"time":"2026-02-03T04:05:07Z","kind":"rewind","key":"rewind","body":{"v":1,"to":1}}`, session.ErrCorrupt, "line 2"},
		"a rewind without its key":       {header + `{"seq":1,"time":"2026-02-03T04:05:07Z","kind":"rewind","body":{"v":1,"to":0}}`, session.ErrInvalid, "line 2"},
		"a newer rewind":                 {header + `{"seq":1,"time":"2026-02-03T04:05:07Z","kind":"rewind","key":"rewind","body":{"v":2,"to":"x"}}`, session.ErrNewer, "line 2"},
		"metadata that is not an object": {header + `{"seq":1,"time":"2026-02-03T04:05:07Z","kind":"meta","key":"meta","body":[]}`, session.ErrInvalid, "line 2"},
	} {
		store := &session.Memory{}
		_, err := session.Import(t.Context(), store, strings.NewReader(tc.text), "")
		if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.line) {
			t.Errorf("%s: %v", name, err)
		}
		for info := range store.List(t.Context()) {
			t.Errorf("%s: %s was made", name, info.ID)
		}
	}
	if _, err := session.Import(t.Context(), &session.Memory{}, io.MultiReader(strings.NewReader(header), failing{}), ""); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '1'
	}
	return len(p), nil
}

func TestS3_EndlessLineIsRefused(t *testing.T) {
	_, err := session.Import(t.Context(), &session.Memory{}, io.MultiReader(strings.NewReader(header), endless{}), "")
	if !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "line 2 of the export: it has more than") {
		t.Error(err)
	}
}

// Entries of a newer version are refused.
func TestS1_NewerAndCorruptEntriesAreTyped(t *testing.T) {
	store := &session.Memory{}
	s := created(t, store)
	save(t, s, dragoman.UserText("a"))
	info, err := store.Info(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		e    session.Entry
		want error
		open bool // it is found when the session is opened
	}{
		"a newer message": {session.Entry{Kind: "message", Body: []byte(`{"v":99,"role":"user"}`)}, session.ErrNewer, false},
		"no message":      {session.Entry{Kind: "message", Body: []byte(`{"role":"user"}`)}, session.ErrCorrupt, false},
		"a newer rewind":  {session.Entry{Kind: "rewind", Key: "rewind", Body: []byte(`{"v":2}`)}, session.ErrNewer, true},
		"no rewind":       {session.Entry{Kind: "rewind", Key: "rewind", Body: []byte(`{"to":0}`)}, session.ErrCorrupt, true},
		"a rewind ahead":  {session.Entry{Kind: "rewind", Key: "rewind", Body: []byte(`{"v":1,"to":9}`)}, session.ErrCorrupt, true},
	} {
		id := strings.ReplaceAll(name, " ", "-")
		tc.e.Time = info.Created
		if err := session.Copy(t.Context(), store, s.ID(), store); !errors.Is(err, session.ErrExists) {
			t.Fatal(err)
		}
		b, err := s.Branch(t.Context(), 1, session.Info{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Append(t.Context(), id, b.Head(), []session.Entry{tc.e}); err != nil {
			t.Fatal(err)
		}
		b, err = session.Open(t.Context(), store, id)
		if !tc.open {
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = b.Load(t.Context())
		}
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzImport(f *testing.F) {
	store := &session.Memory{}
	s, err := session.Create(f.Context(), store, session.Info{ID: "s"})
	if err != nil {
		f.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(s.Save(f.Context(), exchange("q", "a", "r"), []byte(`{"v":1}`)), s.SetMetadata(f.Context(), []byte(`{"a":1}`)), s.Rewind(f.Context(), 3)); err != nil {
			f.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := session.Export(f.Context(), store, "s", &b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(header + message))
	f.Fuzz(func(t *testing.T, text []byte) {
		store := &session.Memory{}
		info, err := session.Import(t.Context(), store, bytes.NewReader(text), "x")
		if err != nil {
			for range store.List(t.Context()) {
				t.Fatal("a refused import created a session")
			}
			return
		}
		// An accepted import can be used, and its export can be imported again.
		s, err := session.Open(t.Context(), store, "x")
		if err != nil {
			t.Fatal(err)
		}
		messages, state, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Metadata(t.Context()); err != nil {
			t.Fatal(err)
		}
		var one, two bytes.Buffer
		if err := session.Export(t.Context(), store, "x", &one); err != nil {
			t.Fatal(err)
		}
		again := &session.Memory{}
		if _, err := session.Import(t.Context(), again, bytes.NewReader(one.Bytes()), ""); err != nil {
			t.Fatalf("%v\n%s", err, one.Bytes())
		}
		if err := session.Export(t.Context(), again, "x", &two); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Fatalf("%v\n%s\n%s", err, one.Bytes(), two.Bytes())
		}
		s, err = session.Open(t.Context(), again, "x")
		if err != nil {
			t.Fatal(err)
		}
		m2, s2, err := s.Load(t.Context())
		if err != nil || len(m2) != len(messages) || !bytes.Equal(compacted(state), compacted(s2)) || info.Head != s.Head() {
			t.Fatal(err)
		}
	})
}

func compacted(b []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return b
	}
	return out.Bytes()
}
