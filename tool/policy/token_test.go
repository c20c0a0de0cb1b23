package policy

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/tool"
)

func key(id string) SigningKey {
	return SigningKey{ID: id, Secret: bytes.Repeat([]byte(id), 32)[:32]}
}

// signerAt returns a signer whose clock the test controls.
func signerAt(t *testing.T, clock *time.Time, older ...SigningKey) *Signer {
	t.Helper()
	s, err := NewSigner(key("k1"), older...)
	if err != nil {
		t.Fatal(err)
	}
	s.Now = func() time.Time { return *clock }
	return s
}

func mustSign(t *testing.T, s *Signer, g Grant) string {
	t.Helper()
	token, err := s.Sign(g)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestA4_TokenIsRedeemedOnce(t *testing.T) {
	clock := time.Unix(1_800_000_000, 0)
	s := signerAt(t, &clock)
	for _, answer := range []tool.Answer{
		approved(),
		{Verdict: tool.Rejected, Message: "no\x00\n."},
		{Verdict: tool.Approved, Value: json.RawMessage(`{"a":1}`)},
	} {
		token := mustSign(t, s, Grant{Binding: binding(), Answer: answer})
		g, err := s.Redeem(context.Background(), token, binding(), nil)
		if err != nil || g.Answer.Verdict != answer.Verdict || g.Answer.Message != answer.Message || string(g.Answer.Value) != string(answer.Value) {
			t.Errorf("%+v, %v; want %+v", g, err, answer)
		}
		if _, err := s.Redeem(context.Background(), token, binding(), nil); !errors.Is(err, ErrTokenReplayed) {
			t.Errorf("a second time: %v", err)
		}
	}
}

func TestQuirkI9_TokenForAnotherBindingIsRefused(t *testing.T) {
	clock := time.Unix(1_800_000_000, 0)
	s := signerAt(t, &clock)
	token := mustSign(t, s, Grant{Binding: binding(), Answer: approved()})
	for field, other := range bindings(binding()) {
		_, err := s.Redeem(context.Background(), token, other, nil)
		var mismatch *mismatchError
		if !errors.As(err, &mismatch) || mismatch.Field != field || !errors.Is(err, ErrToken) {
			t.Errorf("another %s: %v", field, err)
		}
	}
	// A refused attempt does not use up the token.
	if _, err := s.Redeem(context.Background(), token, binding(), nil); err != nil {
		t.Error(err)
	}
}

func TestA4_ForgedTokenIsRefused(t *testing.T) {
	clock := time.Unix(1_800_000_000, 0)
	s := signerAt(t, &clock)
	token := mustSign(t, s, Grant{Binding: binding(), Answer: tool.Answer{Verdict: tool.Rejected}})
	redeem := func(token string) error {
		_, err := s.Redeem(context.Background(), token, binding(), nil)
		return err
	}
	// Changing any character makes the token invalid.
	for i := range len(token) {
		for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=") {
			if c == token[i] {
				continue
			}
			if err := redeem(token[:i] + string(c) + token[i+1:]); !errors.Is(err, ErrToken) || errors.Is(err, ErrTokenReplayed) {
				t.Fatalf("with another character at %d: %v", i, err)
			}
		}
	}
	body, mac, _ := strings.Cut(strings.TrimPrefix(token, tokenPrefix), ".")
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Replace(raw, []byte("rejected"), []byte("approved"), 1)
	unknown := tokenBody{Grant: Grant{Binding: binding(), Answer: approved()}, expires: clock.Add(time.Hour).UnixMilli()}
	enc := base64.RawURLEncoding.EncodeToString
	for name, bad := range map[string]string{
		"another verdict": tokenPrefix + enc(flipped) + "." + mac,
		"no signature":    tokenPrefix + body + ".",
		"a short one":     tokenPrefix + body + "." + mac[:20],
		"an unknown key":  tokenPrefix + enc(unknown.encode("k9")) + "." + enc(sign(key("k9").Secret, unknown.encode("k9"))),
		"another key":     tokenPrefix + enc(unknown.encode("k1")) + "." + enc(sign(key("k9").Secret, unknown.encode("k1"))),
		"no key":          tokenPrefix + enc(unknown.encode("")) + "." + enc(sign(nil, unknown.encode(""))),
	} {
		if err := redeem(bad); !errors.Is(err, errTokenForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, bad := range map[string]string{
		"nothing": "", "a word": "token", "no dot": tokenPrefix + body, "another version": "dga2." + body + "." + mac,
		"a line": token[:40] + "\n" + token[40:], "padding": token + "=", "too long": tokenPrefix + strings.Repeat("A", maxToken) + "." + mac,
		"trailing bytes": tokenPrefix + enc(append(bytes.Clone(raw), 0)) + "." + enc(sign(s.keys["k1"], append(bytes.Clone(raw), 0))),
		"less":           tokenPrefix + enc(raw[:len(raw)-1]) + "." + enc(sign(s.keys["k1"], raw[:len(raw)-1])),
	} {
		if err := redeem(bad); !errors.Is(err, errTokenMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := redeem(token); err != nil {
		t.Errorf("and the true one: %v", err)
	}
}

func TestA4_TokenExpires(t *testing.T) {
	clock := time.Unix(1_800_000_000, 0)
	s := signerAt(t, &clock)
	s.TTL = time.Minute
	token := mustSign(t, s, Grant{Binding: binding(), Answer: approved()})
	clock = clock.Add(time.Minute)
	if _, err := s.Redeem(context.Background(), token, binding(), nil); !errors.Is(err, ErrTokenExpired) {
		t.Errorf("%v", err)
	}
	clock = clock.Add(-time.Millisecond)
	if _, err := s.Redeem(context.Background(), token, binding(), nil); err != nil {
		t.Errorf("%v", err)
	}
}

func TestA4_TokenBindsTheEditedInput(t *testing.T) {
	clock := time.Unix(1_800_000_000, 0)
	s := signerAt(t, &clock)
	edit := &tool.Input{Arguments: json.RawMessage(`{"path":"b"}`)}
	token := mustSign(t, s, Grant{Binding: binding(), Answer: tool.Answer{Verdict: tool.Approved, Edited: edit}})
	for name, other := range map[string]*tool.Input{
		"none": nil, "another": {Arguments: json.RawMessage(`{"path":"c"}`)}, "another space": {Arguments: json.RawMessage(`{"path": "b"}`)},
		"as text": {Text: `{"path":"b"}`}, "with text": {Arguments: edit.Arguments, Text: "x"},
	} {
		var mismatch *mismatchError
		if _, err := s.Redeem(context.Background(), token, binding(), other); !errors.As(err, &mismatch) || mismatch.Field != "edited input" {
			t.Errorf("%s: %v", name, err)
		}
	}
	g, err := s.Redeem(context.Background(), token, binding(), edit)
	if err != nil || g.Answer.Edited == nil || g.Answer.Edited.Hash() != edit.Hash() {
		t.Errorf("%+v, %v", g, err)
	}
	// A token without an edit accepts no edited input.
	token = mustSign(t, s, Grant{Binding: binding(), Answer: approved()})
	if _, err := s.Redeem(context.Background(), token, binding(), edit); !errors.Is(err, ErrToken) {
		t.Errorf("%v", err)
	}
}

func TestA4_KeysCanBeRotated(t *testing.T) {
	clock := time.Unix(1_800_000_000, 0)
	old := signerAt(t, &clock)
	token := mustSign(t, old, Grant{Binding: binding(), Answer: approved()})
	next, err := NewSigner(key("k2"), key("k1"))
	if err != nil {
		t.Fatal(err)
	}
	next.Now = old.Now
	if _, err := next.Redeem(context.Background(), token, binding(), nil); err != nil {
		t.Errorf("a token of the older key: %v", err)
	}
	token = mustSign(t, next, Grant{Binding: binding(), Answer: approved()})
	if _, err := old.Redeem(context.Background(), token, binding(), nil); !errors.Is(err, errTokenForged) {
		t.Errorf("a token of an unknown key: %v", err)
	}
	for name, keys := range map[string][]SigningKey{
		"short": {{ID: "a", Secret: make([]byte, 31)}}, "no id": {{Secret: make([]byte, 32)}}, "duplicate field": {key("a"), key("a")}, "none": {{}},
	} {
		if _, err := NewSigner(keys[0], keys[1:]...); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestA4_InvalidGrantIsNotSigned(t *testing.T) {
	clock := time.Unix(1_800_000_000, 0)
	s := signerAt(t, &clock)
	for name, g := range map[string]Grant{
		"undecided":          {},
		"an unknown verdict": {Answer: tool.Answer{Verdict: "x"}},
		"a sticky edit":      {Sticky: true, Answer: tool.Answer{Verdict: tool.Approved, Edited: &tool.Input{}}},
		"too long":           {Answer: tool.Answer{Verdict: tool.Rejected, Message: strings.Repeat("x", maxToken)}},
	} {
		if _, err := s.Sign(g); !errors.Is(err, ErrDecision) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Random = strings.NewReader("short")
	if _, err := s.Sign(Grant{Answer: approved()}); err == nil {
		t.Error("signed without randomness")
	}
}

type brokenNonces struct{}

func (brokenNonces) Use(context.Context, [16]byte, time.Time) (bool, error) {
	return true, errors.New("the store is down")
}

func TestA4_FailingNonceStoreRefusesTokens(t *testing.T) {
	clock := time.Unix(1_800_000_000, 0)
	s := signerAt(t, &clock)
	for name, store := range map[string]NonceStore{"broken": brokenNonces{}, "none": nil} {
		s.Nonces = store
		if _, err := s.Redeem(context.Background(), mustSign(t, s, Grant{Binding: binding(), Answer: approved()}), binding(), nil); !errors.Is(err, errTokenNonces) {
			t.Errorf("%s: %v", name, err)
		}
	}
	n := &Nonces{Max: 2}
	n.Now = s.Now
	use := func(i byte, until time.Duration) (bool, error) {
		return n.Use(context.Background(), [16]byte{i}, clock.Add(until))
	}
	use(1, time.Minute)
	use(2, time.Hour)
	if _, err := use(3, time.Hour); !errors.Is(err, errNoncesFull) {
		t.Errorf("a full store: %v", err)
	}
	clock = clock.Add(time.Minute) // the first nonce has expired, and its token too
	if ok, err := use(3, time.Hour); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	if ok, _ := use(2, time.Hour); ok {
		t.Error("a used nonce was forgotten")
	}
}

func TestA4_ConcurrentRedeemSucceedsOnce(t *testing.T) {
	clock := time.Unix(1_800_000_000, 0)
	s := signerAt(t, &clock)
	token := mustSign(t, s, Grant{Binding: binding(), Answer: approved()})
	results := make(chan error)
	for range 8 {
		go func() {
			_, err := s.Redeem(context.Background(), token, binding(), nil)
			results <- err
		}()
	}
	won := 0
	for range 8 {
		if err := <-results; err == nil {
			won++
		} else if !errors.Is(err, ErrTokenReplayed) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d redeemers won", won)
	}
}

// End to end: a run stops, a token carries the decision, the run continues.
func TestA4_RunResumesOnlyWithItsToken(t *testing.T) {
	clock := time.Unix(1_800_000_000, 0)
	s := signerAt(t, &clock)
	w, l := newFixture(t, askingPolicy(t)), &Ledger{}
	w.runner.Approver = l
	w.do(`{"path":"a"}`)
	p := w.batch.Pending[0]
	token := mustSign(t, s, Grant{Binding: p.Binding, Answer: approved()})

	other := p
	other.Binding.CallID = "c2"
	if err := s.RedeemInto(context.Background(), l, token, other, nil); !errors.Is(err, ErrToken) {
		t.Errorf("%v", err)
	}
	if w.again(`{"path":"a"}`); w.ran != 0 {
		t.Error("it ran without a decision")
	}
	if err := s.RedeemInto(context.Background(), l, token, p, nil); err != nil {
		t.Fatal(err)
	}
	if r := w.again(`{"path":"a"}`); !r.OK || w.ran != 1 {
		t.Errorf("%+v", r)
	}
	// A sticky decision.
	token = mustSign(t, s, Grant{Binding: p.Binding, Answer: approved(), Sticky: true})
	if err := s.RedeemInto(context.Background(), l, token, p, nil); err != nil {
		t.Fatal(err)
	}
	if w.do(`{"path":"b"}`); w.ran != 2 {
		t.Error("the sticky decision does not hold")
	}
}

func FuzzRedeem(f *testing.F) {
	clock := time.Unix(1_800_000_000, 0)
	s, err := NewSigner(key("k1"))
	if err != nil {
		f.Fatal(err)
	}
	s.Now = func() time.Time { return clock }
	s.Random = bytes.NewReader(bytes.Repeat([]byte{7}, 64))
	token, err := s.Sign(Grant{Binding: binding(), Answer: approved()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add(strings.ToUpper(token))
	f.Add("dga1..")
	f.Add("dga1.AA.AA")
	f.Fuzz(func(t *testing.T, text string) {
		s.Nonces = &Nonces{}
		_, err := s.Redeem(context.Background(), text, binding(), nil)
		if (err == nil) != (text == token) || err != nil && !errors.Is(err, ErrToken) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
