package skill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Pins are the accepted contents of skills, by name. Store them as JSON, such as in a file that is
// committed. The zero value pins nothing. Pins are safe for concurrent use.
//
//	skills, err := skill.Find(".")
//	accepted := skills.Only(func(k *skill.Skill) bool { return pins.Check(k) == nil })
type Pins struct {
	mu     sync.RWMutex
	skills map[string]pin
}

// pin is an accepted skill: the digests of its files by path.
type pin map[string]string

// Change is a skill that differs from its pin.
type Change struct {
	Skill string
	// New reports that the skill has no pin.
	New bool
	// Added, Changed and Removed are paths of files.
	Added, Changed, Removed []string
}

// String describes the change in one line.
func (c *Change) String() string {
	if c.New {
		return fmt.Sprintf("the skill %s is new", c.Skill)
	}
	var parts []string
	for _, p := range []struct {
		word  string
		paths []string
	}{{"added", c.Added}, {"changed", c.Changed}, {"removed", c.Removed}} {
		if len(p.paths) > 0 {
			parts = append(parts, p.word+" "+strings.Join(p.paths, ", "))
		}
	}
	return fmt.Sprintf("the skill %s changed: %s", c.Skill, strings.Join(parts, "; "))
}

// Accept pins the present content of skills.
func (p *Pins) Accept(skills ...*Skill) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.skills == nil {
		p.skills = map[string]pin{}
	}
	for _, k := range skills {
		p.skills[k.Name] = pinOf(k)
	}
}

// Remove removes the pin of a skill and reports whether there was one.
func (p *Pins) Remove(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.skills[name]
	delete(p.skills, name)
	return ok
}

// Check compares a skill with its pin; nil means that it was accepted as it is.
func (p *Pins) Check(k *Skill) *Change {
	p.mu.RLock()
	old, ok := p.skills[k.Name]
	p.mu.RUnlock()
	if !ok {
		return &Change{Skill: k.Name, New: true}
	}
	now := pinOf(k)
	if maps.Equal(old, now) {
		return nil
	}
	c := &Change{Skill: k.Name}
	for _, path := range slices.Sorted(maps.Keys(now)) {
		switch was, ok := old[path]; {
		case !ok:
			c.Added = append(c.Added, path)
		case was != now[path]:
			c.Changed = append(c.Changed, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(old)) {
		if _, ok := now[path]; !ok {
			c.Removed = append(c.Removed, path)
		}
	}
	return c
}

func pinOf(k *Skill) pin {
	p := pin{}
	for _, f := range k.Files {
		p[f.Path] = f.Digest
	}
	return p
}

const pinsVersion = 1

type pinsJSON struct {
	Version int            `json:"version"`
	Skills  map[string]pin `json:"skills"`
}

// MarshalJSON writes the pins, sorted by name and path.
func (p *Pins) MarshalJSON() ([]byte, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := pinsJSON{pinsVersion, p.skills}
	if out.Skills == nil {
		out.Skills = map[string]pin{}
	}
	return json.Marshal(out) // encoding/json sorts the keys of maps
}

// UnmarshalJSON reads what MarshalJSON wrote. An unknown field and another version are errors: a
// pin that is not read would not be checked.
func (p *Pins) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var in pinsJSON
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("skill: pins: %w", err)
	}
	if in.Version != pinsVersion {
		return fmt.Errorf("skill: pins: unknown version %d: this program reads version %d", in.Version, pinsVersion)
	}
	for name, files := range in.Skills {
		if len(files) == 0 {
			return fmt.Errorf("skill: pins: %q has no files", name)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skills = in.Skills
	return nil
}
