package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// This file owns the identity of tools: the key that a tool is registered under, the key that a
// call asks for, the tool that this resolves to, the keys of approvals and traces, and name
// collisions. No other code decides which tool a call is for (requirement I1).
//
// There are seven separate identities, and none replaces another: the public name, the
// namespace, the qualified name, the lookup key, the approval keys, the trace name, and the id
// of the call, which is never the identity of a tool.

// The kinds of lookup keys.
const (
	kindBare       = codes.KeyBare
	kindNamespaced = codes.KeyNamespaced
	// kindDeferred is a tool without a namespace that is hidden until a tool search finds it.
	// Its calls carry its own name as their namespace. Other calls do not match it.
	kindDeferred = codes.KeyDeferred
)

// Key is the lookup key of a tool; [KeyOf] returns it. No tool has the zero Key. Keys are
// comparable with ==.
type Key struct {
	// Kind is "bare", "namespaced" or "deferred_top_level": a tool without a namespace that
	// is hidden until a tool search finds it. Its calls carry its own name as their
	// namespace.
	Kind      string
	Namespace string
	Name      string
}

// bare returns the key of a tool without a namespace.
func bare(name string) Key { return Key{Kind: kindBare, Name: name} }

// namespaced returns the key of a tool in a namespace.
func namespaced(namespace, name string) Key {
	return Key{Kind: kindNamespaced, Namespace: namespace, Name: name}
}

// deferredTopLevel returns the key of a deferred tool without a namespace.
func deferredTopLevel(name string) Key { return Key{Kind: kindDeferred, Name: name} }

// KeyOf returns the key of a tool.
func KeyOf(s *dragoman.ToolSpec) Key {
	switch {
	case s == nil:
		return Key{}
	case s.Namespace != "":
		return namespaced(s.Namespace, s.Name)
	case s.Deferred:
		return deferredTopLevel(s.Name)
	default:
		return bare(s.Name)
	}
}

// KeyOfCall returns the key that a call asks for. A namespace that equals the name marks a call
// of a deferred tool (requirement I2).
func KeyOfCall(c *dragoman.ToolCall) Key {
	switch {
	case c == nil:
		return Key{}
	case c.Namespace == "":
		return bare(c.Name)
	case c.Namespace == c.Name:
		return deferredTopLevel(c.Name)
	default:
		return namespaced(c.Namespace, c.Name)
	}
}

// QualifiedName returns "namespace.name", or only the name if there is no namespace or only the
// synthetic one of a deferred tool.
func (k Key) QualifiedName() string {
	if k.Kind == kindNamespaced {
		return k.Namespace + "." + k.Name
	}
	return k.Name
}

// CallNamespace returns the namespace that calls of the tool carry, including the synthetic one
// of a deferred tool. Use it to restore a call from a stored key.
func (k Key) CallNamespace() string {
	if k.Kind == kindDeferred {
		return k.Name
	}
	return k.Namespace
}

// Call returns c as a call of the tool k, with the namespace that such calls carry. For a
// handler the synthetic namespace is left out (requirement I5).
func (k Key) Call(c dragoman.ToolCall, forHandler bool) dragoman.ToolCall {
	c.Name, c.Namespace = k.Name, k.CallNamespace()
	if forHandler {
		c.Namespace = k.Namespace
	}
	return c
}

// ApprovalKey returns the canonical key under which approvals are stored.
func (k Key) ApprovalKey() string {
	if k.Kind == kindDeferred {
		return kindDeferred + ":" + k.Name
	}
	return k.QualifiedName()
}

// ApprovalKeys returns the keys under which a decision on the tool may be stored, the canonical
// one first. A deferred tool is also found under its bare name, unless a visible tool has that
// name, which bareSibling reports. A tool in a namespace never falls back to a bare name
// (requirement I6).
func (k Key) ApprovalKeys(bareSibling bool) []string {
	if k.Kind == kindDeferred && !bareSibling {
		return []string{k.ApprovalKey(), k.Name}
	}
	return []string{k.ApprovalKey()}
}

// TraceName returns the name of the tool in traces: the explicit one if it is set, otherwise
// the qualified name, which for a deferred tool is its name.
func (k Key) TraceName(explicit string) string {
	if explicit != "" {
		return explicit
	}
	return k.QualifiedName()
}

var keyEscapes = strings.NewReplacer("%", "%25", ":", "%3A")

// MarshalText encodes the key for storage: kind, namespace and name, separated by colons.
// Different keys always have different texts, whatever characters their names contain.
func (k Key) MarshalText() ([]byte, error) {
	switch k.Kind {
	case kindBare, kindDeferred:
		return []byte(k.Kind + ":" + keyEscapes.Replace(k.Name)), nil
	case kindNamespaced:
		return []byte(k.Kind + ":" + keyEscapes.Replace(k.Namespace) + ":" + keyEscapes.Replace(k.Name)), nil
	case "":
		return nil, nil
	default:
		return nil, fmt.Errorf("tool: unknown kind of lookup key %q", k.Kind)
	}
}

var keyUnescapes = strings.NewReplacer("%25", "%", "%3A", ":")

// UnmarshalText decodes the output of MarshalText, and returns an error for any other text.
func (k *Key) UnmarshalText(b []byte) error {
	fields := strings.Split(string(b), ":")
	for i := range fields {
		fields[i] = keyUnescapes.Replace(fields[i])
	}
	var out Key
	switch kind := fields[0]; {
	case len(b) == 0:
	case (kind == kindBare || kind == kindDeferred) && len(fields) == 2:
		out = Key{Kind: kind, Name: fields[1]}
	case kind == kindNamespaced && len(fields) == 3:
		out = Key{Kind: kind, Namespace: fields[1], Name: fields[2]}
	default:
		return fmt.Errorf("tool: invalid lookup key %q: want kind:name or namespaced:namespace:name", b)
	}
	if again, err := out.MarshalText(); err != nil || string(again) != string(b) {
		return fmt.Errorf("tool: lookup key %q is not in canonical form", b)
	}
	*k = out
	return nil
}

// String returns the stored form, for logs.
func (k Key) String() string {
	b, err := k.MarshalText()
	if err != nil {
		return k.QualifiedName()
	}
	return string(b)
}

// sourceRank orders the sources of tools: of two tools with one name the higher rank wins.
func sourceRank(s string) int {
	switch s {
	case codes.FromHandoff:
		return 2
	case codes.FromMCP:
		return 0
	default:
		return 1
	}
}

// ErrNames is wrapped by every error about colliding names of tools.
var ErrNames = errors.New("tool: names collide")

// toolIdentity holds the identity of one tool.
type toolIdentity struct {
	Spec   *dragoman.ToolSpec
	Source string
}

// checkNames validates the names of a whole configuration and returns all errors (requirements
// I3 and I4): the reserved shape, two tools with one key, one qualified name reached in two
// ways, one approval key for two tools, a namespace with two descriptions. A bare tool and a
// deferred tool may share a name, and so may tools in different namespaces.
func checkNames(tools []toolIdentity) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrNames}, args...)...))
	}
	keys := make(map[Key]string, len(tools))
	reached := make(map[string]Key, len(tools))
	approved := make(map[string]Key, len(tools))
	described := map[string]string{}
	for _, t := range tools {
		k := KeyOf(t.Spec)
		switch {
		case k.Name == "":
			bad("a tool has no name")
			continue
		case textkit.CheckName(k.Name) != nil:
			bad("the name %q is invalid: %v", k.Name, textkit.CheckName(k.Name))
			continue
		case textkit.CheckName(k.Namespace) != nil:
			bad("the namespace %q is invalid: %v", k.Namespace, textkit.CheckName(k.Namespace))
			continue
		case k.Kind == kindNamespaced && k.Namespace == k.Name:
			bad("the namespace %q has a tool of the same name, which looks like a call of a deferred tool; rename one", k.Name)
			continue
		}
		if from, twice := keys[k]; twice {
			bad("%s (%s and %s)", describeDuplicate(k), sourceName(from), sourceName(t.Source))
			continue
		}
		keys[k] = t.Source
		if k.Kind != kindDeferred {
			if other, twice := reached[k.QualifiedName()]; twice {
				bad("%q is ambiguous: it names %s and %s; rename one", k.QualifiedName(), other, k)
				continue
			}
			reached[k.QualifiedName()] = k
		}
		if other, twice := approved[k.ApprovalKey()]; twice {
			bad("%s and %s have the same key for approvals, %q; rename one", other, k, k.ApprovalKey())
			continue
		}
		approved[k.ApprovalKey()] = k
		if k.Kind == kindNamespaced {
			said, known := described[k.Namespace]
			if known && said != t.Spec.NamespaceDescription {
				bad("the namespace %q is described as %q and as %q; give all its tools one description", k.Namespace, said, t.Spec.NamespaceDescription)
			}
			described[k.Namespace] = t.Spec.NamespaceDescription
		}
	}
	return errors.Join(errs...)
}

// dispatchMap maps each key to its tool. checkNames has already refused duplicate keys.
func dispatchMap(entries []*entry) map[Key]*entry {
	out := make(map[Key]*entry, len(entries))
	for _, e := range entries {
		out[e.key] = e
	}
	return out
}

func describeDuplicate(k Key) string {
	if k.Kind == kindDeferred {
		return fmt.Sprintf("two deferred tools are named %q", k.Name)
	}
	return fmt.Sprintf("two tools are named %q", k.QualifiedName())
}

// winners resolves collisions between sources: of tools with one key the handoff wins over the
// local tool, and that over the MCP tool. It returns the indexes of the remaining tools, in
// order, and a line for each removed tool. Two tools from one source both remain; checkNames
// refuses them.
func winners(tools []toolIdentity) (stay []int, lost []string) {
	best := map[string]int{}
	for _, t := range tools {
		name := KeyOf(t.Spec).ApprovalKey()
		best[name] = max(best[name], sourceRank(t.Source))
	}
	for i, t := range tools {
		k := KeyOf(t.Spec)
		if sourceRank(t.Source) < best[k.ApprovalKey()] {
			lost = append(lost, fmt.Sprintf("%s (%s) is replaced by a tool of the same name", k.QualifiedName(), sourceName(t.Source)))
			continue
		}
		stay = append(stay, i)
	}
	return stay, lost
}

func sourceName(s string) string {
	if s == codes.FromLocal {
		return "local"
	}
	return s
}

// nearest returns the names of the keys most similar to the one asked for, best first.
func nearest(asked Key, keys []Key, most int) []string {
	type scored struct {
		name string
		far  int
	}
	want := strings.ToLower(asked.QualifiedName())
	var list []scored
	for _, k := range keys {
		name := k.QualifiedName()
		far := min(textkit.Distance(want, strings.ToLower(name)), textkit.Distance(strings.ToLower(asked.Name), strings.ToLower(k.Name)))
		if far <= max(len(want), len(name))/2 {
			list = append(list, scored{name, far})
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return a.far - b.far })
	var out []string
	for _, s := range list[:min(most, len(list))] {
		out = append(out, s.name)
	}
	return out
}
