// Package access describes the virtual keys of a gateway: which models a client may use, and
// how much.
package access

import (
	"crypto/sha256"
	"slices"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

// Key is a virtual key: its name, the hashes of its secrets, and its permissions and limits.
type Key struct {
	// Name identifies the key in logs and metrics. It is not secret.
	Name string
	// Hash is the SHA-256 of the secret that clients send; see [HashOf]. The secret itself is
	// not stored. SHA-256 is fast to try, so the secret must be random and have at least 16
	// characters.
	Hash [sha256.Size]byte
	// MoreHashes holds hashes of further secrets of the same key, such as the old one during a
	// rotation.
	MoreHashes [][sha256.Size]byte
	// Models lists the model names that clients may request, in which * matches any text; empty
	// means all.
	Models []string
	// Fields lists body fields that a key with Models may use although they choose models
	// or their servers in addition to the field model: "models", "provider", "tools.model";
	// "*" means all. See [Key.AllowsField].
	Fields []string
	// HideUpstream suppresses the response headers that name the upstream that responded
	// and those that failed before it.
	HideUpstream bool
	// RequestsPerMinute and TokensPerMinute limit the rate, and Parallel the requests in
	// progress; zero means no limit.
	RequestsPerMinute, TokensPerMinute, Parallel int
	// Budget limits the tokens of an hour, a day or a month.
	Budget Budget
}

// Budget is the number of tokens, of prompts and responses, that a key may use in a period.
// Zero tokens mean no budget.
type Budget struct {
	Tokens int64
	// Per is "hour", "day" or "month", by the calendar in UTC.
	Per string
	// Reserve is the number of output tokens to reserve for a request without a maximum;
	// zero means 4096.
	Reserve int64
}

// HashOf returns the hash of a secret, for [Key].
func HashOf(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// maxModel is the maximum length of a name that is matched against patterns.
const maxModel = 1024

// Allows reports whether the key may request a model.
func (k *Key) Allows(model string) bool {
	if len(k.Models) == 0 {
		return true
	}
	return len(model) <= maxModel && slices.ContainsFunc(k.Models, func(pattern string) bool { return textkit.MatchStars(pattern, model) })
}

// AllowsField reports whether the key may use a body field that chooses models in addition
// to the field model. A key that may use all models may use all fields. Nested fields are named
// with dots and without the indexes of lists.
func (k *Key) AllowsField(name string) bool {
	return len(k.Models) == 0 || slices.ContainsFunc(k.Fields, func(field string) bool { return field == "*" || field == name })
}
