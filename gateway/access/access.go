// Package access describes the virtual keys of a gateway: who may use which models, and
// how much of them.
package access

import (
	"crypto/sha256"
	"slices"

	"github.com/dragoman-go/dragoman/internal/text/glob"
)

// Key is a virtual key: a name, what it proves itself with, and what it may do.
type Key struct {
	// Name is what logs and metrics call it. It is no secret.
	Name string
	// Hash is the SHA-256 of the secret that clients present; see [HashOf]. The
	// secret itself is kept nowhere. SHA-256 is quick to try: a secret must be
	// random, of 16 characters or more, and not a word that somebody chose.
	Hash [sha256.Size]byte
	// Also are the hashes of further secrets that are the same key: while one is being
	// changed, the old and the new are.
	Also [][sha256.Size]byte
	// Models are the names that clients may ask for, in which * stands for any
	// text; empty means all.
	Models []string
	// Fields lists body fields that a key with Models may use although they choose models
	// or their servers in addition to the field model: "models", "provider", "tools.model";
	// "*" means all. See [Key.AllowsField].
	Fields []string
	// HideUpstream suppresses the response headers that name the upstream that responded
	// and those that failed before it.
	HideUpstream bool
	// RequestsPerMinute and TokensPerMinute bound the rate, Parallel how many
	// requests are under way; zero means no bound.
	RequestsPerMinute, TokensPerMinute, Parallel int
	// Budget bounds the tokens of an hour, a day or a month.
	Budget Budget
}

// Budget is how many tokens, of prompts and answers, a key may use in a period. Zero
// tokens mean that there is none.
type Budget struct {
	Tokens int64
	// Per is "hour", "day" or "month", of the calendar in UTC.
	Per string
	// Reserve is the number of output tokens to reserve for a request without a maximum;
	// zero means 4096.
	Reserve int64
}

// HashOf is the hash of a secret, for [Key].
func HashOf(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// maxModel is how long a name may be that a pattern is tried on.
const maxModel = 1024

// Allows reports whether the key may ask for a model.
func (k *Key) Allows(model string) bool {
	if len(k.Models) == 0 {
		return true
	}
	return len(model) <= maxModel && slices.ContainsFunc(k.Models, func(pattern string) bool { return glob.MatchStars(pattern, model) })
}

// AllowsField reports whether the key may use a body field that chooses models in addition
// to the field model. A key that may use all models may use all fields. Nested fields are named
// with dots and without the indexes of lists.
func (k *Key) AllowsField(name string) bool {
	return len(k.Models) == 0 || slices.ContainsFunc(k.Fields, func(field string) bool { return field == "*" || field == name })
}
