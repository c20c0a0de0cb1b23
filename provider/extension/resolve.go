package extension

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Set holds extensions in the order of their registration. Create one with [NewSet].
type Set struct {
	entries []entry
	byName  map[string]int
}

type entry struct {
	ext  Extension
	info Info
}

// NewSet checks that every extension has a unique name, and that its hooks have the signatures
// that [Extension] lists.
func NewSet(extensions ...Extension) (*Set, error) {
	s := &Set{byName: map[string]int{}}
	var wrong []error
	for i, x := range extensions {
		if x == nil {
			wrong = append(wrong, fmt.Errorf("%w: extension %d is nil", ErrExtensions, i))
			continue
		}
		info := x.Info()
		if _, twice := s.byName[info.Name]; info.Name == "" || twice {
			wrong = append(wrong, fmt.Errorf("%w: the name %q of extension %d is empty or not unique", ErrExtensions, info.Name, i))
			continue
		}
		if err := checkHooks(x); err != nil {
			wrong = append(wrong, fmt.Errorf("%w: extension %s: %w", ErrExtensions, info.Name, err))
			continue
		}
		s.byName[info.Name] = len(s.entries)
		s.entries = append(s.entries, entry{x, info})
	}
	return s, errors.Join(wrong...)
}

// With returns a set with more extensions after those of s.
func (s *Set) With(extensions ...Extension) (*Set, error) {
	return NewSet(append(s.All(), extensions...)...)
}

// All returns the extensions, in order.
func (s *Set) All() []Extension {
	if s == nil {
		return nil
	}
	out := make([]Extension, len(s.entries))
	for i, e := range s.entries {
		out[i] = e.ext
	}
	return out
}

// Switches turn extensions on or off by name, regardless of tags.
type Switches struct {
	// On and Off override tags; an extension that is in both is off.
	On, Off []string
	// Force overrides On and Off.
	Force []string
}

// Resolution lists the extensions that are on.
type Resolution struct {
	// On lists the extensions that are on, in the order of the set.
	On []Extension
	// Tags lists all tags, sorted.
	Tags []Tag
	// Why has one reason for every extension of the set, in order.
	Why []Reason

	setup Setup
}

// Reason explains why an extension is on or off.
type Reason struct {
	Name string
	On   bool
	Text string
}

// Idle reports whether no extension that is on changes requests or responses: see
// [Extension].
func (r *Resolution) Idle() bool {
	return !slices.ContainsFunc(r.On, func(e Extension) bool {
		if i, ok := e.(idler); ok && i.Idle(r.setup.Config[e.Info().Name]) {
			return false
		}
		switch e.(type) {
		case preparer, contributor, decorator, chunkReader, finisher, nativeWriter, nativeReader:
			return true
		default:
			return false
		}
	})
}

// Has reports whether a tag is present.
func (r *Resolution) Has(t Tag) bool { return has(r.Tags, t) }

// has reports whether a sorted list has a tag.
func has(tags []Tag, t Tag) bool {
	_, found := slices.BinarySearch(tags, t)
	return found
}

// Resolve finds the extensions that are on for a request with these tags. Extensions that are
// on add their own tags, which may turn others on or off, so Resolve repeats this until nothing
// changes. Extensions that would turn each other on and off forever are off. The result does
// not depend on the order of evaluation. Unknown names among the switches are an error.
func (s *Set) Resolve(tags []Tag, sw Switches) (*Resolution, error) {
	return s.ResolveFor(tags, sw, Setup{})
}

// ResolveFor is [Set.Resolve] with a configuration and a request for the tags, elements
// and actions of extensions.
func (s *Set) ResolveFor(tags []Tag, sw Switches, setup Setup) (*Resolution, error) {
	if err := s.known(sw); err != nil {
		return nil, err
	}
	r := resolver{set: s, base: tags, sw: sw, setup: setup}
	if s != nil {
		r.disputed = make([]bool, len(s.entries))
		r.provides = make([][]Tag, len(s.entries))
		r.resolved = make([]bool, len(s.entries))
	}
	on := r.settle()
	out := &Resolution{Tags: r.tags(on), setup: setup}
	if r.failed != nil {
		return nil, r.failed
	}
	for i, state := range on {
		if state {
			out.On = append(out.On, s.entries[i].ext)
		}
		_, why := r.judge(i, out.Tags)
		out.Why = append(out.Why, Reason{Name: s.entries[i].info.Name, On: state, Text: why})
	}
	return out, nil
}

func (s *Set) known(sw Switches) error {
	var wrong []error
	for _, name := range slices.Concat(sw.On, sw.Off, sw.Force) {
		if s == nil {
			wrong = append(wrong, fmt.Errorf("%w: unknown extension %q", ErrExtensions, name))
		} else if _, ok := s.byName[name]; !ok {
			wrong = append(wrong, fmt.Errorf("%w: unknown extension %q", ErrExtensions, name))
		}
	}
	return errors.Join(wrong...)
}

type resolver struct {
	set   *Set
	base  []Tag
	sw    Switches
	setup Setup
	// provides holds the tags that each active extension adds, if resolved is set for it.
	provides [][]Tag
	resolved []bool
	// failed is the first error of an extension.
	failed error
	// disputed extensions never reach a stable state, and stay off.
	disputed []bool
}

// settle repeats until the tags and the extensions agree. A state that recurs would recur
// forever: extensions that changed in between and depend on their own tags are disputed from
// then on, and so are those that still change after many rounds. That can happen once for each
// extension, so settle terminates.
func (r *resolver) settle() []bool {
	if r.set == nil {
		return nil
	}
	on := make([]bool, len(r.set.entries))
	var seen [][]bool
	for {
		next := make([]bool, len(on))
		tags := r.tags(on)
		for i := range on {
			next[i], _ = r.judge(i, tags)
		}
		if slices.Equal(next, on) {
			return on
		}
		back := slices.IndexFunc(seen, func(s []bool) bool { return slices.Equal(s, next) })
		if len(seen) > 4*len(on) { // a chain of switches is no longer than that
			back = len(seen) - 1 - len(on)
		}
		if back < 0 {
			seen = append(seen, next)
			on = next
			continue
		}
		r.dispute(seen[back:], next)
		seen, on = nil, make([]bool, len(on))
	}
}

// dispute marks the extensions that changed between some states and the next and depend on
// their own tags, directly or through others that changed. Those that only follow them become
// stable without them.
func (r *resolver) dispute(states [][]bool, next []bool) {
	changed := make([]bool, len(next))
	for _, state := range states {
		for i := range state {
			changed[i] = changed[i] || state[i] != next[i]
		}
	}
	found := false
	for i := range changed {
		if changed[i] && r.switchesItself(i, changed) {
			r.disputed[i], found = true, true
		}
	}
	for i := range changed {
		r.disputed[i] = r.disputed[i] || !found && changed[i]
	}
}

// switchesItself reports whether the tags of an extension decide about itself, through
// the given extensions.
func (r *resolver) switchesItself(i int, among []bool) bool {
	reached := make([]bool, len(among))
	for next := []int{i}; len(next) > 0; next = next[1:] {
		for j := range among {
			if !among[j] || reached[j] || !r.decides(next[0], j) {
				continue
			}
			if j == i {
				return true
			}
			reached[j] = true
			next = append(next, j)
		}
	}
	return false
}

// decides reports whether an extension adds a tag that another requires or forbids.
func (r *resolver) decides(i, j int) bool {
	info := &r.set.entries[j].info
	return slices.ContainsFunc(r.provides[i], func(t Tag) bool {
		return slices.Contains(info.Requires, t) || slices.Contains(info.Forbids, t)
	})
}

// tags returns the tags of the request and of the extensions that are on, sorted.
func (r *resolver) tags(on []bool) []Tag {
	tags := append(make([]Tag, 0, len(r.base)), r.base...) // an empty list is not null in JSON
	for i, state := range on {
		if state {
			tags = append(tags, r.provided(i)...)
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// provided returns the tags that an active extension adds. It never calls an extension that
// is off (requirement X2).
func (r *resolver) provided(i int) []Tag {
	if !r.resolved[i] {
		r.resolved[i] = true
		var err error
		if r.provides[i], err = tagsOf(r.set.entries[i].ext, &r.set.entries[i].info, r.setup); err != nil && r.failed == nil {
			r.failed = err
		}
	}
	return r.provides[i]
}

// judge reports whether an extension is on with these sorted tags, and why.
func (r *resolver) judge(i int, tags []Tag) (on bool, why string) {
	info := &r.set.entries[i].info
	switch {
	case slices.Contains(r.sw.Force, info.Name):
		return true, "forced"
	case slices.Contains(r.sw.Off, info.Name):
		return false, "switched off"
	case slices.Contains(r.sw.On, info.Name):
		return true, "switched on"
	case info.OptIn:
		return false, "off until it is switched on"
	case r.disputed[i]:
		return false, "the tags do not settle: extensions switch each other on and off"
	}
	var missing, forbidden []string
	for _, t := range info.Requires {
		if !has(tags, t) {
			missing = append(missing, string(t))
		}
	}
	for _, t := range info.Forbids {
		if has(tags, t) {
			forbidden = append(forbidden, string(t))
		}
	}
	switch {
	case len(missing) > 0:
		return false, "lacks " + strings.Join(missing, ", ")
	case len(forbidden) > 0:
		return false, "forbids " + strings.Join(forbidden, ", ")
	default:
		return true, "the required tags are present"
	}
}
