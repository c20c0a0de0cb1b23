package interop

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/text/charset"
	"github.com/dragoman-go/dragoman/targets"
)

// toolID is the identity of a tool: never its wire name.
type toolID struct{ namespace, name string }

// names holds the wire names of one request, both ways. A wire name is the
// public name where the target allows it, else a sanitised form with a hash of
// the identity: legal, distinct, and independent of the order of tools
// (quirks A34, A35).
type names struct {
	rule    targets.NameRule
	flatten bool // namespaces have no place on this wire
	// asTheyAre: bare names go to the one who chose them.
	asTheyAre bool
	wire      map[toolID]string
	tools     map[string]*dragoman.ToolSpec // by wire name; of declared tools only
	ids       map[string]toolID             // by wire name; of every name written
}

func newNames(rule targets.NameRule, flatten bool, tools []dragoman.ToolSpec) *names {
	n := &names{rule: rule, flatten: flatten}
	if len(tools) > 0 {
		n.wire = make(map[toolID]string, len(tools))
		n.tools = make(map[string]*dragoman.ToolSpec, len(tools))
		n.ids = make(map[string]toolID, len(tools))
	}
	// How many identities want each natural name: those that share one are all
	// hashed, except a bare name, which is its author's own.
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
	// Names that stay come first, so that no hash ever takes one of them,
	// whatever the order of the tools.
	var rest []*dragoman.ToolSpec
	for i := range tools {
		id := toolID{tools[i].Namespace, tools[i].Name}
		if _, dup := n.wire[id]; dup || id.name == "" {
			continue // the first declaration wins (quirk A36)
		}
		natural := n.natural(id)
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

// wanted counts the tools that would like each name, and says which are bare.
func (n *names) wanted(tools []dragoman.ToolSpec) (wanted map[string]int, bare map[string]bool) {
	wanted, bare = make(map[string]int, len(tools)), make(map[string]bool, len(tools))
	seen := make(map[toolID]bool, len(tools))
	for i := range tools {
		id := toolID{tools[i].Namespace, tools[i].Name}
		if seen[id] || id.name == "" {
			continue
		}
		seen[id] = true
		natural := n.natural(id)
		wanted[natural]++
		if !n.isFlattened(id) {
			bare[natural] = true
		}
	}
	return wanted, bare
}

// asTheyStand returns the names for who chose them. What is written of the ones is known
// of the others.
func (n *names) asTheyStand() *names {
	if n.wire == nil {
		n.wire = map[toolID]string{}
	}
	if n.ids == nil {
		n.ids = map[string]toolID{}
	}
	known := *n
	known.asTheyAre = true
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

// natural is the name a tool would like on this wire.
func (n *names) natural(id toolID) string {
	if n.isFlattened(id) {
		return id.namespace + "__" + id.name
	}
	return id.name
}

// key makes wire names unique where the wire keeps namespaces.
func (n *names) key(namespace, wire string) string {
	if n.flatten || namespace == "" {
		return wire
	}
	return namespace + "\x00" + wire
}

// hashed returns an alias that no other tool has. A hash that somebody foresaw
// grows, and is then made again: each try that fails costs them a tool, so
// there are at most as many as names, unless the rule leaves no room for them.
func (n *names) hashed(id toolID) string {
	natural, seed := n.natural(id), id.namespace+"\x00"+id.name
	sum := sha256.Sum256([]byte(seed))
	for size := 8; size <= 2*len(sum); size += 8 {
		if w := sanitise(natural, n.rule, hex.EncodeToString(sum[:])[:size]); n.free(id, w) {
			return w
		}
	}
	for try := 1; ; try++ {
		sum = sha256.Sum256([]byte(seed + "\x00" + strconv.Itoa(try)))
		if w := sanitise(natural, n.rule, hex.EncodeToString(sum[:])); n.free(id, w) || try > len(n.ids) {
			return w
		}
	}
}

// free reports whether w stands for no other tool.
func (n *names) free(id toolID, w string) bool {
	taken, ok := n.ids[n.key(id.namespace, w)]
	return !ok || taken == id
}

// wireName returns the name to write for a tool, declared or not.
func (n *names) wireName(namespace, name string) string {
	if n.asTheyAre && namespace == "" {
		n.announce(name)
		return name
	}
	id := toolID{namespace, name}
	if w, ok := n.wire[id]; ok {
		return w
	}
	w := n.natural(id)
	if other, taken := n.ids[n.key(namespace, w)]; !n.rule.Allows(w) || (taken && other != id) {
		w = n.hashed(id)
	}
	put(&n.wire, id, w)
	put(&n.ids, n.key(namespace, w), id)
	return w
}

// announce takes a bare name, which no other tool gets from then on.
func (n *names) announce(name string) {
	if _, taken := n.ids[name]; !taken && name != "" {
		put(&n.ids, name, toolID{name: name})
	}
}

// shares reports whether a bare name was given to another tool already.
func (n *names) shares(namespace, name string) bool {
	id, taken := n.ids[name]
	return n.asTheyAre && namespace == "" && taken && id != toolID{name: name}
}

// renamed reports whether a client of this wire knows a tool by another name
// than the wire's.
func (n *names) renamed(namespace, wire string, id toolID) bool {
	return wire != n.natural(id) || !n.flatten && namespace != id.namespace
}

// spec returns the tool that was declared under an identity, or nil.
func (n *names) spec(id toolID) *dragoman.ToolSpec {
	w, ok := n.wire[id]
	if !ok {
		return nil
	}
	return n.tools[n.key(id.namespace, w)]
}

// resolve returns the identity behind a wire name; a name that was never
// written, and is none of the declared ones decorated, is its own.
func (n *names) resolve(namespace, wire string) (toolID, *dragoman.ToolSpec) {
	if n.isFlattened(toolID{namespace: namespace}) {
		// The call is in a format with namespaces: its name is the tool's own, unless it
		// is the name of a tool of this namespace on the wire.
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

// decorations are what models put before the name of a tool they were given.
var decorations = []string{"functions.", "functions:", "default_api.", "default_api:", "tools.", "tool."}

// undecorated finds the declared tool that a model means by a name which is
// none (quirk B22): blanks around it, the residue of a template behind it, its
// qualified name, a well-known prefix, its namespace twice, another case. Each step
// only takes what is exactly the name of one tool, so it never guesses between two.
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

// qualified finds the one declared tool with a qualified name. Tool results name tools
// so, and a model that reads them may call a tool by that name instead of its wire name.
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

// isQualified is spec.QualifiedName() == name without an allocation: a response can make
// the comparison run often.
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

// maxDecorated bounds the names that are looked at more closely: no wire takes
// longer ones.
const maxDecorated = 512

// folded finds the one declared tool whose wire name differs by case only.
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

// sanitise replaces what a rule forbids and ends the name with hash, within
// the rule's length. A rule too short for both keeps what it can of the hash.
func sanitise(name string, rule targets.NameRule, hash string) string {
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
		case i == 0 && !charset.Has(first, c):
			if charset.Has(first, '_') {
				b = append(b, '_')
			} else {
				b = append(b, 't')
			}
			if charset.Has(rule.Rest, c) {
				b = append(b, c)
			}
		case !charset.Has(rule.Rest, c):
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
	case charset.Has(set, '_'):
		return "_"
	case charset.Has(set, '-'):
		return "-"
	default:
		return ""
	}
}
