package interop

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/targets"
)

// toolID is the identity of a tool. It is never the wire name.
type toolID struct{ namespace, name string }

// names maps tools to wire names and back, for one request. A wire name is the public name if
// the target allows it, otherwise a sanitized form with a hash of the identity: valid, unique,
// and independent of the order of tools (quirks A34, A35).
type names struct {
	rule    targets.NameRule
	flatten bool // the wire has no namespaces
	// unchanged: names without a namespace are sent unchanged to the client that chose them.
	unchanged bool
	wire      map[toolID]string
	tools     map[string]*dragoman.ToolSpec // by wire name; declared tools only
	ids       map[string]toolID             // by wire name; every name that was written
}

func newNames(rule targets.NameRule, flatten bool, tools []dragoman.ToolSpec) *names {
	n := &names{rule: rule, flatten: flatten}
	if len(tools) > 0 {
		n.wire = make(map[toolID]string, len(tools))
		n.tools = make(map[string]*dragoman.ToolSpec, len(tools))
		n.ids = make(map[string]toolID, len(tools))
	}
	// Count the tools that want each natural name: those that share one are all hashed, except
	// a tool without a namespace, which keeps its author's name.
	var wanted map[string]int
	var bare map[string]bool
	if slices.ContainsFunc(tools, func(t dragoman.ToolSpec) bool { return n.isFlattened(toolID{namespace: t.Namespace}) }) {
		wanted, bare = n.wanted(tools)
	}
	claim := func(id toolID, wire string, spec *dragoman.ToolSpec) {
		n.wire[id] = wire
		key := n.key(id.namespace, wire)
		n.ids[key] = id
		n.tools[key] = spec
	}
	// Assign unchanged names first, so that no hash takes one of them, whatever the order of
	// the tools.
	var rest []*dragoman.ToolSpec
	for i := range tools {
		id := toolID{tools[i].Namespace, tools[i].Name}
		if _, dup := n.wire[id]; dup || id.name == "" {
			continue // the first declaration wins (quirk A36)
		}
		natural := n.preferred(id)
		if !n.rule.Allows(natural) || (n.isFlattened(id) && (bare[natural] || wanted[natural] > 1)) {
			rest = append(rest, &tools[i])
			continue
		}
		claim(id, natural, &tools[i])
	}
	slices.SortStableFunc(rest, func(a, b *dragoman.ToolSpec) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, spec := range rest {
		id := toolID{spec.Namespace, spec.Name}
		if _, dup := n.wire[id]; !dup {
			claim(id, n.hashed(id), spec)
		}
	}
	return n
}

// wanted counts the tools that want each name, and returns the names without a namespace.
func (n *names) wanted(tools []dragoman.ToolSpec) (wanted map[string]int, bare map[string]bool) {
	wanted, bare = make(map[string]int, len(tools)), make(map[string]bool, len(tools))
	seen := make(map[toolID]bool, len(tools))
	for i := range tools {
		id := toolID{tools[i].Namespace, tools[i].Name}
		if seen[id] || id.name == "" {
			continue
		}
		seen[id] = true
		natural := n.preferred(id)
		wanted[natural]++
		if !n.isFlattened(id) {
			bare[natural] = true
		}
	}
	return wanted, bare
}

// forClient returns the names for the client that chose them. Both values share the names
// that were written.
func (n *names) forClient() *names {
	if n.wire == nil {
		n.wire = map[toolID]string{}
	}
	if n.ids == nil {
		n.ids = map[string]toolID{}
	}
	known := *n
	known.unchanged = true
	return &known
}

// flattened returns names of the same tools for a format without namespaces.
func (n *names) flattened() *names {
	tools := make([]dragoman.ToolSpec, 0, len(n.tools))
	for _, spec := range n.tools {
		tools = append(tools, *spec)
	}
	return newNames(n.rule, true, tools)
}

func (n *names) isFlattened(id toolID) bool { return n.flatten && id.namespace != "" }

// preferred returns the preferred name of a tool on this wire.
func (n *names) preferred(id toolID) string {
	if n.isFlattened(id) {
		return id.namespace + "__" + id.name
	}
	return id.name
}

// key makes wire names unique if the wire has namespaces.
func (n *names) key(namespace, wire string) string {
	if n.flatten || namespace == "" {
		return wire
	}
	return namespace + "\x00" + wire
}

// hashed returns an unused alias. If the hash is taken, because an attacker predicted it,
// hashed makes it longer and then tries another one. Each failed try needs another tool, so
// there are at most as many tries as names, unless the rule has too few possible names.
func (n *names) hashed(id toolID) string {
	natural, seed := n.preferred(id), id.namespace+"\x00"+id.name
	sum := sha256.Sum256([]byte(seed))
	for size := 8; size <= 2*len(sum); size += 8 {
		if w := sanitize(natural, n.rule, hex.EncodeToString(sum[:])[:size]); n.free(id, w) {
			return w
		}
	}
	for try := 1; ; try++ {
		sum = sha256.Sum256([]byte(seed + "\x00" + strconv.Itoa(try)))
		if w := sanitize(natural, n.rule, hex.EncodeToString(sum[:])); n.free(id, w) || try > len(n.ids) {
			return w
		}
	}
}

// free reports whether w is not the name of another tool.
func (n *names) free(id toolID, w string) bool {
	taken, ok := n.ids[n.key(id.namespace, w)]
	return !ok || taken == id
}

// wireName returns the name to write for a tool, declared or not.
func (n *names) wireName(namespace, name string) string {
	if n.unchanged && namespace == "" {
		n.reserve(name)
		return name
	}
	id := toolID{namespace, name}
	if w, ok := n.wire[id]; ok {
		return w
	}
	w := n.preferred(id)
	if other, taken := n.ids[n.key(namespace, w)]; !n.rule.Allows(w) || (taken && other != id) {
		w = n.hashed(id)
	}
	put(&n.wire, id, w)
	put(&n.ids, n.key(namespace, w), id)
	return w
}

// reserve reserves a name without a namespace, so that no other tool gets it.
func (n *names) reserve(name string) {
	if _, taken := n.ids[name]; !taken && name != "" {
		put(&n.ids, name, toolID{name: name})
	}
}

// isShared reports whether a name without a namespace was already given to another tool.
func (n *names) isShared(namespace, name string) bool {
	id, taken := n.ids[name]
	return n.unchanged && namespace == "" && taken && id != toolID{name: name}
}

// renamed reports whether the clients of this wire know a tool by another name than the wire
// name.
func (n *names) renamed(namespace, wire string, id toolID) bool {
	return wire != n.preferred(id) || !n.flatten && namespace != id.namespace
}

// spec returns the tool that was declared under an identity, or nil.
func (n *names) spec(id toolID) *dragoman.ToolSpec {
	w, ok := n.wire[id]
	if !ok {
		return nil
	}
	return n.tools[n.key(id.namespace, w)]
}

// resolve returns the identity behind a wire name. A name that was never written, and is not a
// decorated form of a declared name, is its own identity.
func (n *names) resolve(namespace, wire string) (toolID, *dragoman.ToolSpec) {
	if n.isFlattened(toolID{namespace: namespace}) {
		// The call is in a format with namespaces: its name is the tool's own, unless it is the
		// wire name of a tool of this namespace.
		id := toolID{namespace, wire}
		if other, ok := n.ids[wire]; ok && other.namespace == namespace {
			id = other
		}
		return id, n.spec(id)
	}
	key := n.key(namespace, wire)
	if id, ok := n.ids[key]; ok {
		return id, n.tools[key]
	}
	if key, ok := n.undecorated(namespace, wire); ok {
		return n.ids[key], n.tools[key]
	}
	return toolID{namespace, wire}, nil
}

// decorations are prefixes that models put before the name of a tool.
var decorations = []string{"functions.", "functions:", "default_api.", "default_api:", "tools.", "tool."}

// undecorated finds the declared tool that a model means by an unknown name (quirk B22): with
// blanks around it, template residue after it, its qualified name, a well-known prefix, a
// repeated namespace, or another case. Each step only accepts the exact name of one tool, so it
// never guesses between two.
func (n *names) undecorated(namespace, wire string) (key string, ok bool) {
	if len(n.tools) == 0 || len(wire) > maxDecorated {
		return "", false
	}
	bare, _, _ := strings.Cut(wire, "<|")
	for changed := true; changed; {
		bare = strings.TrimSpace(bare)
		if key = n.key(namespace, bare); n.tools[key] != nil {
			return key, true
		}
		if key, ok = n.qualified(namespace, bare); ok {
			return key, true
		}
		changed = false
		for _, prefix := range decorations {
			if rest, cut := strings.CutPrefix(bare, prefix); cut {
				bare, changed = rest, true
				break
			}
		}
		if ns, rest, cut := strings.Cut(bare, "__"); !changed && cut && strings.HasPrefix(rest, ns+"__") {
			bare, changed = rest, true
		}
	}
	return n.folded(namespace, bare)
}

// qualified finds the only declared tool with a qualified name. Tool results use qualified
// names, and a model that reads them may call a tool by that name instead of its wire name.
func (n *names) qualified(namespace, name string) (key string, ok bool) {
	if namespace != "" || name == "" {
		return "", false
	}
	for k, spec := range n.tools {
		if isQualified(spec, name) {
			if ok {
				return "", false
			}
			key, ok = k, true
		}
	}
	return key, ok
}

// isQualified is spec.QualifiedName() == name without an allocation, because a response can
// trigger many comparisons.
func isQualified(spec *dragoman.ToolSpec, name string) bool {
	rest := name
	if ns := spec.Namespace; ns != "" {
		var cut bool
		if rest, cut = strings.CutPrefix(rest, ns); !cut {
			return false
		}
		if rest, cut = strings.CutPrefix(rest, "."); !cut {
			return false
		}
	}
	return rest == spec.Name
}

// maxDecorated limits the length of names that are checked for decorations: no wire allows
// longer ones.
const maxDecorated = 512

// folded finds the only declared tool whose wire name differs in case only.
func (n *names) folded(namespace, wire string) (key string, ok bool) {
	want := n.key(namespace, wire)
	for k := range n.tools {
		if strings.EqualFold(k, want) {
			if ok {
				return "", false
			}
			key, ok = k, true
		}
	}
	return key, ok
}

// sanitize replaces the characters that a rule forbids and appends hash, within the rule's
// length. If the rule is too short for both, it keeps as much of the hash as fits.
func sanitize(name string, rule targets.NameRule, hash string) string {
	first := rule.First
	if first == "" {
		first = rule.Rest
	}
	gap := separator(rule.Rest)
	suffix := gap + hash
	room := len(name) + 1
	if rule.Max > 0 {
		if room = rule.Max - len(suffix); room < 1 {
			suffix = suffix[max(0, len(suffix)-rule.Max+1):]
			room = rule.Max - len(suffix)
		}
	}
	b := make([]byte, 0, 64)
	for i := 0; i < len(name) && len(b) < room; i++ {
		c := name[i]
		switch {
		case i == 0 && !textkit.InSet(first, c):
			if textkit.InSet(first, '_') {
				b = append(b, '_')
			} else {
				b = append(b, 't')
			}
			if textkit.InSet(rule.Rest, c) {
				b = append(b, c)
			}
		case !textkit.InSet(rule.Rest, c):
			b = append(b, gap...)
		default:
			b = append(b, c)
		}
	}
	if len(b) == 0 {
		b = append(b, "tool"...)
	}
	if len(b) > room {
		b = b[:room]
	}
	return strings.ToValidUTF8(string(b), "") + suffix
}

// separator returns the character that replaces forbidden ones and precedes a hash. It is
// empty if the wire allows only letters and digits.
func separator(set string) string {
	switch {
	case textkit.InSet(set, '_'):
		return "_"
	case textkit.InSet(set, '-'):
		return "-"
	default:
		return ""
	}
}
