package policy

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/tool"
)

// SigningKey is a secret for signing tokens.
type SigningKey struct {
	// ID identifies the key in tokens, so that keys can be rotated.
	ID string
	// Secret is random and has at least 32 bytes.
	Secret []byte
}

// minSecret is the minimum length of a signing key, in bytes.
const minSecret = 32

// Signer turns decisions of humans into tokens and redeems them. A token carries a decision to
// another process or across stateless HTTP: it covers exactly the [tool.Binding] of one call,
// once, until it expires (requirement A4, quirk I9). Tokens are signed, not encrypted.
//
// A Signer is safe for concurrent use. Do not change it while it is in use.
type Signer struct {
	// TTL is the lifetime of tokens; zero means 15 minutes.
	TTL time.Duration
	// Nonces stores which tokens were used. If several processes redeem tokens, they must share
	// a store; session.Nonces is one that also survives a restart. NewSigner sets the memory of
	// this process. Nil refuses all tokens.
	Nonces NonceStore
	// Now is the clock and Random the source of nonces; nil means the system's.
	Now    func() time.Time
	Random io.Reader

	current SigningKey
	keys    map[string][]byte
}

// NewSigner returns a signer that signs with the current key, and also accepts tokens of older
// keys.
func NewSigner(current SigningKey, older ...SigningKey) (*Signer, error) {
	s := &Signer{current: current, keys: map[string][]byte{}, Nonces: &Nonces{}}
	for _, k := range append([]SigningKey{current}, older...) {
		switch {
		case k.ID == "":
			return nil, errors.New("policy: a signing key needs an id")
		case len(k.ID) > maxField:
			return nil, errors.New("policy: the id of a signing key is too long")
		case len(k.Secret) < minSecret:
			return nil, fmt.Errorf("policy: signing key %q has %d bytes: at least %d are needed", k.ID, len(k.Secret), minSecret)
		case s.keys[k.ID] != nil:
			return nil, fmt.Errorf("policy: duplicate signing key %q", k.ID)
		}
		s.keys[k.ID] = append([]byte(nil), k.Secret...)
	}
	return s, nil
}

const defaultTTL = 15 * time.Minute

// Grant is the content of a token.
type Grant struct {
	Binding tool.Binding
	// Answer is the decision. The token has only the hash of its edited input: the caller of
	// Redeem passes the input.
	Answer tool.Answer
	// Sticky extends the answer to all calls of the tool in the run, as Answer.Sticky does.
	Sticky bool
}

// Errors of tokens.
var (
	// ErrToken is wrapped by all errors of tokens.
	ErrToken = errors.New("policy: the approval token was refused")
	// errTokenMalformed is a text that is not a token.
	errTokenMalformed = fmt.Errorf("%w: it is not a token", ErrToken)
	// errTokenForged is a token that was not signed with one of the keys.
	errTokenForged  = fmt.Errorf("%w: its signature is wrong", ErrToken)
	ErrTokenExpired = fmt.Errorf("%w: it has expired", ErrToken)
	// ErrTokenReplayed is a token that was redeemed before.
	ErrTokenReplayed = fmt.Errorf("%w: it was used before", ErrToken)
	// errTokenNonces reports that it is unknown whether a token was used.
	errTokenNonces = fmt.Errorf("%w: cannot check whether it was used before", ErrToken)
)

// mismatchError is a token for another call than the one it was redeemed for.
type mismatchError struct {
	// Field is the part of the binding that differs: run, turn, call, tool,
	// definition, arguments, policy, or edited input.
	Field string
}

func (e *mismatchError) Error() string {
	return fmt.Sprintf("%v: it was issued for another %s", ErrToken, e.Field)
}

// Unwrap lets errors.Is find [ErrToken].
func (e *mismatchError) Unwrap() error { return ErrToken }

// nonceSize is the length of a token's nonce in bytes.
const nonceSize = 16

const (
	tokenPrefix = "dga1."
	// tokenDomain separates these signatures from others with the same key.
	tokenDomain = "dragoman approval token 1\x00"
	maxField    = 1 << 16
	maxToken    = 1 << 20
)

// Sign returns a token for a decision.
func (s *Signer) Sign(g Grant) (string, error) {
	if err := checkAnswer(g.Answer); err != nil {
		return "", err
	}
	g.Sticky, g.Answer.Sticky = g.Sticky || g.Answer.Sticky, false
	switch {
	case g.Answer.Verdict == tool.Undecided:
		return "", fmt.Errorf("%w: there is no decision to sign", ErrDecision)
	case g.Sticky && (g.Answer.Edited != nil || g.Answer.Value != nil):
		return "", fmt.Errorf("%w: a sticky decision cannot have an edited input", ErrDecision)
	}
	ttl := s.TTL
	if ttl <= 0 {
		ttl = defaultTTL
	}
	body := tokenBody{Grant: g, expires: now(s.Now).Add(ttl).UnixMilli()}
	if g.Answer.Edited != nil {
		hash := g.Answer.Edited.Hash()
		body.edited = &hash
	}
	random := s.Random
	if random == nil {
		random = rand.Reader
	}
	if _, err := io.ReadFull(random, body.nonce[:]); err != nil {
		return "", fmt.Errorf("policy: cannot generate a token: %w", err)
	}
	raw := body.encode(s.current.ID)
	if len(raw) > maxToken/2 {
		return "", fmt.Errorf("%w: it is too long for a token", ErrDecision)
	}
	enc := base64.RawURLEncoding.Strict()
	return tokenPrefix + enc.EncodeToString(raw) + "." + enc.EncodeToString(sign(s.keys[s.current.ID], raw)), nil
}

func sign(secret, raw []byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(tokenDomain))
	m.Write(raw)
	return m.Sum(nil)
}

// Redeem checks a token for a pending call and returns its decision. edited is the edited input
// that was approved, or nil if there was no edit. A token can be redeemed once.
func (s *Signer) Redeem(ctx context.Context, token string, want tool.Binding, edited *tool.Input) (Grant, error) {
	body, err := s.open(token)
	if err != nil {
		return Grant{}, err
	}
	if body.expires <= now(s.Now).UnixMilli() {
		return Grant{}, ErrTokenExpired
	}
	if field := body.differs(want, edited); field != "" {
		return Grant{}, &mismatchError{Field: field}
	}
	if s.Nonces == nil {
		return Grant{}, fmt.Errorf("%w: it cannot be redeemed, because no store is set", errTokenNonces)
	}
	fresh, err := s.Nonces.Use(ctx, body.nonce, time.UnixMilli(body.expires))
	switch {
	case err != nil:
		return Grant{}, fmt.Errorf("%w: %w", errTokenNonces, err)
	case !fresh:
		return Grant{}, ErrTokenReplayed
	}
	g := body.Grant
	if edited != nil {
		g.Answer.Edited = &tool.Input{Arguments: append([]byte(nil), edited.Arguments...), Text: edited.Text}
		if edited.Arguments == nil {
			g.Answer.Edited.Arguments = nil
		}
	}
	return g, nil
}

// RedeemInto redeems a token for a pending call and records its decision.
func (s *Signer) RedeemInto(ctx context.Context, l *Ledger, token string, pending tool.Pending, edited *tool.Input) error {
	g, err := s.Redeem(ctx, token, pending.Binding, edited)
	if err != nil {
		return err
	}
	if g.Sticky {
		l.stick(g.Binding, g.Answer)
		return nil
	}
	return l.Decide(g.Binding, g.Answer)
}

// open checks the signature before it reads anything else.
func (s *Signer) open(token string) (*tokenBody, error) {
	text, ok := strings.CutPrefix(token, tokenPrefix)
	payload, mac, dot := strings.Cut(text, ".")
	if !ok || !dot || len(token) > maxToken {
		return nil, errTokenMalformed
	}
	enc := base64.RawURLEncoding.Strict()
	raw, err1 := enc.DecodeString(payload)
	sum, err2 := enc.DecodeString(mac)
	if err1 != nil || err2 != nil || strings.ContainsAny(text, "\r\n") {
		return nil, errTokenMalformed
	}
	d := decoder{b: raw}
	kid := d.str()
	secret := s.keys[kid]
	if d.bad || secret == nil || !hmac.Equal(sum, sign(secret, raw)) {
		return nil, errTokenForged
	}
	body := &tokenBody{}
	if !body.decode(&d) {
		return nil, errTokenMalformed
	}
	return body, nil
}

// tokenBody is the signed content.
type tokenBody struct {
	Grant
	edited  *tool.Hash
	expires int64 // Unix milliseconds
	nonce   [nonceSize]byte
}

// encode encodes the body injectively: every text is preceded by its length, so that different
// bodies have different bytes.
func (t *tokenBody) encode(kid string) []byte {
	var e encoder
	e.str(kid)
	b := t.Binding
	e.str(b.Run)
	e.num(int64(b.Turn))
	e.str(b.CallID)
	e.str(b.Key.Kind)
	e.str(b.Key.Namespace)
	e.str(b.Key.Name)
	e.str(string(b.Tool[:]))
	e.str(string(b.Arguments[:]))
	e.str(b.Policy)
	e.str(string(t.Answer.Verdict))
	e.str(t.Answer.Message)
	e.flag(t.Answer.Value != nil)
	e.str(string(t.Answer.Value))
	e.flag(t.edited != nil)
	if t.edited != nil {
		e.str(string(t.edited[:]))
	} else {
		e.str("")
	}
	e.flag(t.Sticky)
	e.num(t.expires)
	e.str(string(t.nonce[:]))
	return e.b
}

// decode reads the output of encode after the key id, and refuses anything else.
func (t *tokenBody) decode(d *decoder) bool {
	b := &t.Binding
	b.Run = d.str()
	b.Turn = int(d.num())
	b.CallID = d.str()
	b.Key = tool.Key{Kind: d.str(), Namespace: d.str(), Name: d.str()}
	d.fixed(b.Tool[:])
	d.fixed(b.Arguments[:])
	b.Policy = d.str()
	t.Answer.Verdict = tool.Verdict(d.str())
	t.Answer.Message = d.str()
	hasValue := d.flag()
	if value := d.str(); hasValue {
		t.Answer.Value = []byte(value)
	}
	if d.flag() {
		t.edited = new(tool.Hash)
		d.fixed(t.edited[:])
	} else if d.str() != "" {
		return false
	}
	t.Sticky = d.flag()
	t.expires = d.num()
	d.fixed(t.nonce[:])
	return !d.bad && len(d.b) == 0 && checkAnswer(t.Answer) == nil && t.Answer.Verdict != tool.Undecided
}

// differs returns the field in which the token differs from the call, or "".
func (t *tokenBody) differs(want tool.Binding, edited *tool.Input) string {
	have := t.Binding
	switch {
	case have.Run != want.Run:
		return "run"
	case have.Turn != want.Turn:
		return "turn"
	case have.CallID != want.CallID:
		return "call"
	case have.Key != want.Key:
		return "tool"
	case have.Tool != want.Tool:
		return "definition"
	case have.Arguments != want.Arguments:
		return "arguments"
	case have.Policy != want.Policy:
		return "policy"
	case (t.edited == nil) != (edited == nil), edited != nil && edited.Hash() != *t.edited:
		return "edited input"
	default:
		return ""
	}
}

type encoder struct{ b []byte }

func (e *encoder) num(n int64)  { e.b = binary.AppendVarint(e.b, n) }
func (e *encoder) str(s string) { e.num(int64(len(s))); e.b = append(e.b, s...) }
func (e *encoder) flag(v bool) {
	if v {
		e.num(1)
	} else {
		e.num(0)
	}
}

// decoder reads the output of an encoder. After the first error it returns zero values.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) num() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 || d.bad {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) str() string {
	n := d.num()
	if d.bad || n < 0 || n > int64(len(d.b)) {
		d.bad, d.b = true, nil
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) flag() bool {
	n := d.num()
	if n != 0 && n != 1 {
		d.bad = true
	}
	return n == 1
}

func (d *decoder) fixed(into []byte) {
	if s := d.str(); len(s) == len(into) {
		copy(into, s)
	} else {
		d.bad = true
	}
}

// NonceStore stores the nonces of redeemed tokens.
type NonceStore interface {
	// Use reports whether the nonce is used for the first time, and stores it until it
	// expires. Of several concurrent callers exactly one gets true. An error refuses the
	// token.
	Use(ctx context.Context, nonce [nonceSize]byte, expires time.Time) (fresh bool, err error)
}

// Nonces stores nonces in memory. The zero value is ready to use. It is safe for concurrent
// use.
type Nonces struct {
	// Max limits the nonces of tokens that have not expired; further tokens are refused. Zero
	// means 100,000.
	Max int
	// Now is the clock; nil means the system's.
	Now func() time.Time

	mu   sync.Mutex
	used map[[nonceSize]byte]time.Time
}

// errNoncesFull reports that more tokens were redeemed than the store can hold.
var errNoncesFull = errors.New("policy: the store of redeemed tokens is full")

// Use implements [NonceStore].
func (n *Nonces) Use(_ context.Context, nonce [nonceSize]byte, expires time.Time) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, used := n.used[nonce]; used {
		return false, nil
	}
	most := n.Max
	if most <= 0 {
		most = 100_000
	}
	if len(n.used) >= most {
		at := now(n.Now)
		for k, until := range n.used {
			if !until.After(at) {
				delete(n.used, k)
			}
		}
		if len(n.used) >= most {
			return false, errNoncesFull
		}
	}
	if n.used == nil {
		n.used = map[[nonceSize]byte]time.Time{}
	}
	n.used[nonce] = expires
	return true, nil
}
