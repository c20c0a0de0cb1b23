package access

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/internal/glob"
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
	Per    Period
	// Reserve is the number of output tokens to reserve for a request without a maximum;
	// zero means [DefaultReserve].
	Reserve int64
}

// DefaultReserve is the number of output tokens that are reserved for a request without a
// maximum, unless [Budget.Reserve] is set.
const DefaultReserve = 4096

// Period is how long a [Budget] lasts: [Hour], [Day] or [Month], of the calendar in
// UTC.
type Period string

// The periods of budgets.
const (
	Hour  Period = "hour"
	Day   Period = "day"
	Month Period = "month"
)

// Periods are all there are.
func Periods() []Period { return []Period{Hour, Day, Month} }

// end is when the period that now is in is over.
func (p Period) end(now time.Time) time.Time {
	now = now.UTC()
	year, month, day := now.Date()
	switch p {
	case Hour:
		return time.Date(year, month, day, now.Hour()+1, 0, 0, 0, time.UTC)
	case Day:
		return time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
	default:
		return time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
	}
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

// clone is a copy that shares nothing with k.
func (k *Key) clone() Key {
	c := *k
	c.Models, c.Also, c.Fields = slices.Clone(k.Models), slices.Clone(k.Also), slices.Clone(k.Fields)
	return c
}

// KeyError says what is wrong with a [Key].
type KeyError struct {
	Key    string
	Reason string
}

func (e *KeyError) Error() string { return fmt.Sprintf("access: key %q: %s", e.Key, e.Reason) }

// check finds the first key that cannot be used.
func check(keys []Key) error {
	names, hashes := map[string]bool{}, map[[sha256.Size]byte]string{}
	for i := range keys {
		k := &keys[i]
		bad := k.wrong()
		if bad == "" && names[k.Name] {
			bad = "the name is there twice"
		}
		for _, hash := range k.hashes() {
			if other, twice := hashes[hash]; bad == "" && twice {
				bad = "it is the same secret as that of " + other
			}
			hashes[hash] = k.Name
		}
		if bad != "" {
			return &KeyError{Key: k.Name, Reason: bad}
		}
		names[k.Name] = true
	}
	return nil
}

// hashes are those of all secrets of a key.
func (k *Key) hashes() [][sha256.Size]byte {
	return slices.Concat([][sha256.Size]byte{k.Hash}, k.Also)
}

// wrong says what is wrong with a key by itself, or nothing.
func (k *Key) wrong() string {
	switch {
	case k.Name == "":
		return "the name is missing"
	case slices.Contains(k.hashes(), [sha256.Size]byte{}):
		return "the hash is missing"
	case slices.Contains(k.hashes(), HashOf("")):
		return "the hash is that of an empty text"
	case k.RequestsPerMinute < 0 || k.TokensPerMinute < 0 || k.Parallel < 0 || k.Budget.Tokens < 0 || k.Budget.Reserve < 0:
		return "a bound is below zero"
	case k.Budget.Tokens > 0 && !slices.Contains(Periods(), k.Budget.Per):
		return fmt.Sprintf("the budget is per %q; want hour, day or month", k.Budget.Per)
	case slices.Contains(k.Models, ""):
		return "a model has no name"
	case slices.Contains(k.Fields, ""):
		return "a field has no name"
	default:
		return ""
	}
}

// some lists names, but for those that are too many to be read.
func some(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
