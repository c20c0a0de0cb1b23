package access

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/gateway/access"
)

// Key is a virtual key.
type Key = access.Key

// Budget is the number of tokens that a key may use in a period.
type Budget = access.Budget

// HashOf returns the hash of a secret.
func HashOf(secret string) [sha256.Size]byte { return access.HashOf(secret) }

// DefaultReserve is the number of output tokens that are reserved for a request without a
// maximum, unless [Budget.Reserve] is set.
const DefaultReserve = 4096

// Period is the period of a [Budget].
type Period = string

// The periods of budgets, of the calendar in UTC.
const (
	Hour  Period = "hour"
	Day   Period = "day"
	Month Period = "month"
)

// Periods returns all periods.
func Periods() []Period { return []Period{Hour, Day, Month} }

// periodEnd returns the end of the period that contains now.
func periodEnd(p Period, now time.Time) time.Time {
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

// clone returns a deep copy of k.
func clone(k *Key) Key {
	c := *k
	c.Models, c.MoreHashes, c.Fields = slices.Clone(k.Models), slices.Clone(k.MoreHashes), slices.Clone(k.Fields)
	return c
}

// KeyError reports an invalid [Key].
type KeyError struct {
	Key    string
	Reason string
}

func (e *KeyError) Error() string { return fmt.Sprintf("access: key %q: %s", e.Key, e.Reason) }

// check returns an error for the first invalid key.
func check(keys []Key) error {
	names, owners := map[string]bool{}, map[[sha256.Size]byte]string{}
	for i := range keys {
		k := &keys[i]
		bad := keyProblem(k)
		if bad == "" && names[k.Name] {
			bad = "the name is used twice"
		}
		for _, hash := range hashes(k) {
			if other, twice := owners[hash]; bad == "" && twice {
				bad = "same secret as the key " + other
			}
			owners[hash] = k.Name
		}
		if bad != "" {
			return &KeyError{Key: k.Name, Reason: bad}
		}
		names[k.Name] = true
	}
	return nil
}

// hashes returns the hashes of all secrets of a key.
func hashes(k *Key) [][sha256.Size]byte {
	return slices.Concat([][sha256.Size]byte{k.Hash}, k.MoreHashes)
}

// keyProblem returns what is wrong with a single key, or "".
func keyProblem(k *Key) string {
	switch {
	case k.Name == "":
		return "the name is missing"
	case slices.Contains(hashes(k), [sha256.Size]byte{}):
		return "the hash is missing"
	case slices.Contains(hashes(k), HashOf("")):
		return "this is the hash of an empty key"
	case k.RequestsPerMinute < 0 || k.TokensPerMinute < 0 || k.Parallel < 0 || k.Budget.Tokens < 0 || k.Budget.Reserve < 0:
		return "a limit is negative"
	case k.Budget.Tokens > 0 && !slices.Contains(Periods(), k.Budget.Per):
		return fmt.Sprintf("the budget is per %q; want hour, day or month", k.Budget.Per)
	case slices.Contains(k.Models, ""):
		return "a name in the list of models is empty"
	case slices.Contains(k.Fields, ""):
		return "a name in the list of fields is empty"
	default:
		return ""
	}
}

// joinSome lists names, up to a readable number.
func joinSome(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
