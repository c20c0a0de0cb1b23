package mcpserver

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/tool"
)

// sealer encrypts what clients hold for the server. A client can neither read nor change it.
type sealer struct {
	aead cipher.AEAD
	now  func() time.Time
}

func newSealer(key []byte, now func() time.Time) (*sealer, error) {
	sum := sha256.Sum256(append([]byte("dragoman mcp server state v1\x00"), key...))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, fmt.Errorf("mcpserver: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("mcpserver: %w", err)
	}
	return &sealer{aead: aead, now: now}, nil
}

// seal encrypts a value for a purpose and a principal: opened for another one, it is invalid.
func (s *sealer) seal(purpose, principal string, v any) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("mcpserver: sealing a state: %w", err)
	}
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(plain)+s.aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return "", fmt.Errorf("mcpserver: sealing a state: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, context64(purpose, principal))), nil
}

var errSeal = errors.New("it was not made by this server for this caller, or the server restarted since")

func (s *sealer) open(purpose, principal, sealed string, v any) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || len(raw) < s.aead.NonceSize() {
		return errSeal
	}
	plain, err := s.aead.Open(nil, raw[:s.aead.NonceSize()], raw[s.aead.NonceSize():], context64(purpose, principal))
	if err != nil || json.Unmarshal(plain, v) != nil {
		return errSeal
	}
	return nil
}

func context64(purpose, principal string) []byte {
	return []byte(purpose + "\x00" + principal)
}

// state is the state of a request while a client answers questions. The client holds it,
// sealed.
type state struct {
	// Subject is the tool, prompt or resource, and Params the hash of the parameters of the
	// request: the retry must repeat them.
	Subject string `json:"s"`
	Params  string `json:"a"`
	// Run and Call identify the call for the journal.
	Run  string `json:"r"`
	Call string `json:"c"`
	// Pending is the waiting call, with the binding of its approval.
	Pending *tool.Pending `json:"p,omitempty"`
	// Rounds holds the answers to the tool's own questions, one element for each call of Ask.
	// Got holds answers of the current round.
	Rounds []map[string]json.RawMessage `json:"rounds,omitempty"`
	Got    map[string]json.RawMessage   `json:"got,omitempty"`
	// Granted holds the answers to approval requests by their binding.
	Granted map[string]tool.Answer `json:"granted,omitempty"`
	// Open holds the unanswered questions.
	Open    map[string]asked `json:"open,omitempty"`
	ID      string           `json:"id"`
	Expires int64            `json:"exp"`
}

// asked is one open question. Binding is empty for a question of the tool itself.
type asked struct {
	Question
	Binding  string             `json:"b,omitempty"`
	Wanted   *tool.InputRequest `json:"w,omitempty"`
	ValueRaw bool               `json:"raw,omitempty"` // the value is JSON text
	Freeform bool               `json:"f,omitempty"`
	Edits    bool               `json:"e,omitempty"` // the form offers to change the arguments
	Own      bool               `json:"o,omitempty"` // a question of the tool, not of this package
}

const sealState = "state"

func (s *Server) sealState(principal string, st *state) (string, error) {
	st.ID = randomID()
	st.Expires = s.now().Add(s.o.ApprovalTTL).Unix()
	return s.seal.seal(sealState, principal, st)
}

// openState opens and checks the state of a retried request. The state is not spent yet.
func (s *Server) openState(principal, sealed, subject, params string) (*state, error) {
	var st state
	if err := s.seal.open(sealState, principal, sealed, &st); err != nil {
		return nil, invalidParams("the requestState is invalid: " + err.Error() + ". Send the request again without it")
	}
	switch {
	case st.Subject != subject || st.Params != params:
		return nil, invalidParams("the requestState belongs to a request with other parameters. Repeat the parameters unchanged, or send the request without it")
	case s.now().Unix() > st.Expires:
		return nil, invalidParams("the requestState has expired. Send the request again without it")
	}
	return &st, nil
}

// spentStates makes each state work once. With a journal, a state that was spent with the same
// answers may be used again, also after a restart: the journal then has the call, so the call
// does not run again.
type spentStates struct {
	journal tool.Journal
	now     func() time.Time

	mu    sync.Mutex
	spent map[string]int64 // expiry by id
}

// maxSpent bounds the states that are remembered in memory. They expire with their state.
const maxSpent = 100_000

var (
	errSpent = invalidParams("the requestState was already used. Send the request again without it")
	errFull  = errors.New("too many open questions")
)

func (s *spentStates) spend(ctx context.Context, st *state, answers map[string]json.RawMessage) error {
	if s.journal == nil {
		return s.inMemory(st)
	}
	intent := tool.Intent{
		CallRef:   tool.CallRef{Run: "mcp-state", CallID: st.ID},
		Arguments: tool.Hash(sha256.Sum256(encode(answers))),
	}
	prior, err := s.journal.Begin(ctx, intent)
	if err != nil {
		return fmt.Errorf("mcpserver: the journal failed: %w", err)
	}
	if prior.Attempts > 0 && prior.Arguments != intent.Arguments {
		return errSpent
	}
	return nil
}

func (s *spentStates) inMemory(st *state) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, used := s.spent[st.ID]; used {
		return errSpent
	}
	if len(s.spent) >= maxSpent {
		now := s.now().Unix()
		for id, expires := range s.spent {
			if expires < now {
				delete(s.spent, id)
			}
		}
		if len(s.spent) >= maxSpent {
			return errFull
		}
	}
	if s.spent == nil {
		s.spent = map[string]int64{}
	}
	s.spent[st.ID] = st.Expires
	return nil
}

func randomID() string { return strings.ToLower(rand.Text()) }

// hashParams returns the hash of parameters that a retry must repeat. Clients may write the
// same JSON with other white space or another order of fields.
func hashParams(name string, arguments json.RawMessage) string {
	canonical := arguments
	dec := json.NewDecoder(strings.NewReader(string(arguments)))
	dec.UseNumber()
	var v any
	if len(arguments) > 0 && dec.Decode(&v) == nil {
		canonical = encode(v)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s:%s", len(name), name, canonical)
	return hex.EncodeToString(h.Sum(nil))
}

func bindingKey(b tool.Binding) string {
	sum := sha256.Sum256(encode(b))
	return hex.EncodeToString(sum[:])
}
