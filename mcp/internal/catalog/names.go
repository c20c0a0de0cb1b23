package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

const (
	// maxName is the length of a name that every provider accepts.
	maxName = 64
	// maxOriginal bounds the name at the server.
	maxOriginal = 1024
	hashDigits  = 8
)

// PublicName returns the name for models of a tool: the original if it is legal for every
// provider, or mcp_<server>__<tool> with prefix. If that is illegal or too long, illegal
// characters become _, and a hash of the label and the original name follows. It depends on
// nothing else, so other tools and their order never change it.
func PublicName(label, name string, prefix bool) string {
	public := name
	// Without a hash, label a__b with tool c and label a with tool b__c would have one name.
	ambiguous := false
	if prefix {
		public = "mcp_" + label + "__" + name
		ambiguous = strings.Contains(label, "__") || strings.HasSuffix(label, "_")
	}
	if legalName(public) && !ambiguous {
		return public
	}
	return hashedName(public, label, name, hashDigits)
}

// hashedName returns a legal name that ends with a hash of the label and the original name.
func hashedName(public, label, name string, digits int) string {
	sum := sha256.Sum256([]byte(label + "\x00" + name))
	suffix := "_" + hex.EncodeToString(sum[:])[:digits]
	var b strings.Builder
	for _, r := range public {
		if b.Len() == 0 && !isASCIILetter(r) {
			b.WriteString("tool_")
		}
		if b.Len() >= maxName-len(suffix) {
			break
		}
		if r < 0x80 && isNameByte(byte(r)) {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	return b.String() + suffix
}

// legalName reports whether every provider accepts a name.
func legalName(s string) bool {
	if s == "" || len(s) > maxName || !isASCIILetter(rune(s[0])) {
		return false
	}
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return true
}

func isASCIILetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func isNameByte(c byte) bool { return isASCIILetter(rune(c)) || textkit.InSet("0-9_-", c) }

// Collision is a public name that tools of two servers have.
type Collision struct {
	Public         string
	First, Second  string // labels of the servers
	NameAt, NameOf string // original names at First and Second
}

func (c Collision) Error() string {
	return fmt.Sprintf("servers %q and %q both have a tool named %q: set a prefix or a namespace for one of them, or exclude the tool", c.First, c.Second, c.Public)
}

// Collisions returns the public names that more than one server uses, sorted by name. Tools in
// different namespaces do not collide.
func Collisions(results ...*Result) []Collision {
	type key struct{ namespace, public string }
	first := map[key]*Tool{}
	var out []Collision
	for _, res := range results {
		for i := range res.Tools {
			t := &res.Tools[i]
			k := key{t.Spec.Namespace, t.Public}
			switch f := first[k]; {
			case f == nil:
				first[k] = t
			case f.Server != t.Server:
				out = append(out, Collision{Public: t.Public, First: f.Server, Second: t.Server, NameAt: f.Name, NameOf: t.Name})
			}
		}
	}
	slices.SortFunc(out, func(a, b Collision) int {
		return cmp.Or(strings.Compare(a.Public, b.Public), strings.Compare(a.First, b.First), strings.Compare(a.Second, b.Second))
	})
	return out
}

// matchAny reports whether one of the patterns matches a name.
func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return textkit.MatchStars(p, name) })
}

// selected reports whether the filters of o select a tool.
func (o *Options) selected(name string) bool {
	return (len(o.Include) == 0 || matchAny(o.Include, name)) && !matchAny(o.Exclude, name)
}

// The values of [Options.Approval].
const (
	approvalAlways = "always"
	approvalNever  = "never"
)

// needsApproval reports whether calls of a tool need approval.
func (o *Options) needsApproval(name string, readOnly *bool) bool {
	best, rule := -1, ""
	for pattern, value := range o.Approval {
		if !textkit.MatchStars(pattern, name) {
			continue
		}
		if len(pattern) > best || len(pattern) == best && value != approvalNever {
			best, rule = len(pattern), value
		}
	}
	if best >= 0 {
		return rule != approvalNever
	}
	return !o.Trusted || readOnly == nil || !*readOnly
}
