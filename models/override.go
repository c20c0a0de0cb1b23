package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/configfile"
)

// maxFile bounds the size of an override file, in bytes.
const maxFile = 8 << 20

// FileError reports an error in an override file with its position.
type FileError struct {
	File         string
	Line, Column int
	Reason       string
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// With returns the table with the entries of an override file, in YAML or JSON. An entry
// whose id is in the table replaces the fields that it has; null makes a fact
// unknown. Any other id adds an entry. The name is used in messages; each error is a
// [*FileError].
//
//	version: 1
//	models:
//	  - id: openai/gpt-4.1
//	    price: {in: 1.5, out: 6}            # replaces the whole price
//	  - id: vllm/our-model                  # new: provider and name
//	    match: [our-model, our-model-*]     # default: the name after the slash
//	    like: openai/gpt-4.1                # facts to begin with; no limits, no price
//	    reasoning: {supported: true, efforts: [low, medium, high]}
//	    refuses: [top_k]
//
// The provider of an id is a built-in one; for a provider in a config file it is the
// provider's type.
func (c *Catalog) With(name string, data []byte) (*Catalog, error) {
	o := override{base: c, entries: map[string][]*Entry{}, seen: map[string]bool{}}
	if len(data) > maxFile {
		return nil, &FileError{File: name, Line: 1, Column: 1, Reason: fmt.Sprintf("the file is longer than %d bytes", maxFile)}
	}
	root, errs := configfile.Read(data)
	o.Errs = errs
	if root != nil {
		o.read(root)
	}
	if len(o.Errs) == 0 {
		if changed := o.catalog(root); len(o.Errs) == 0 {
			return changed, nil
		}
	}
	all := make([]error, len(o.Errs))
	for i, e := range o.Errs {
		all[i] = &FileError{File: name, Line: e.Line, Column: e.Column, Reason: e.Reason}
	}
	return nil, errors.Join(all...)
}

// override reads an override file.
type override struct {
	configfile.Reader
	base *Catalog
	// entries holds the entries of the providers that the file changes.
	entries map[string][]*Entry
	seen    map[string]bool
}

// catalog returns the table with the changed providers.
func (o *override) catalog(root *configfile.Node) *Catalog {
	c := &Catalog{rules: o.base.rules, providers: maps.Clone(o.base.providers)}
	c.rules.Providers = slices.Clone(c.rules.Providers)
	for _, name := range slices.Sorted(maps.Keys(o.entries)) {
		p, err := newProvider(o.entries[name])
		if err != nil {
			o.Bad(root, "%v", err)
		}
		if c.providers[name] == nil {
			c.rules.Providers = append(c.rules.Providers, name)
		}
		c.providers[name] = func() *provider { return p }
	}
	return c
}

func (o *override) read(root *configfile.Node) {
	version := false
	o.Fields(root, "model facts", map[string]func(*configfile.Node){
		"version": func(n *configfile.Node) {
			version = true
			if n.Kind != configfile.Number || n.Text != "1" {
				o.Bad(n, "version: this program supports only version 1")
			}
		},
		"models": func(n *configfile.Node) {
			if o.Want(n, configfile.List, "models") {
				for _, item := range n.Items {
					o.entry(item)
				}
			}
		},
	})
	if root.Kind == configfile.Map && !version {
		o.Bad(root, "model facts: the field version is missing; write version: 1")
	}
}

// entry reads one entry on top of the table's entry.
func (o *override) entry(n *configfile.Node) {
	if !o.Want(n, configfile.Map, "models") {
		return
	}
	get := func(key string) *configfile.Node {
		if i := slices.IndexFunc(n.Keys, func(k *configfile.Node) bool { return k.Text == key }); i >= 0 {
			return n.Items[i]
		}
		return nil
	}
	id := get("id")
	if id == nil {
		o.Bad(n, "models: the field id is missing; write provider/name")
		return
	}
	provider, name, ok := strings.Cut(o.String(id, "id"), "/")
	if !ok || provider == "" || name == "" {
		o.Bad(id, "id: %q is not provider/name, such as openai/gpt-4.1", id.Text)
		return
	}
	if o.seen[id.Text] {
		o.Bad(id, "id: duplicate entry %q", id.Text)
		return
	}
	o.seen[id.Text] = true
	if p := o.base.providers[provider]; o.entries[provider] == nil && p != nil {
		o.entries[provider] = slices.Clone(p().entries)
	}
	entries := o.entries[provider]
	at := slices.IndexFunc(entries, func(e *Entry) bool { return e.ID == id.Text })
	e := Entry{Match: []string{name}, Status: "current"}
	if at >= 0 {
		e = *entries[at]
	}
	if like := get("like"); like != nil {
		source := o.base.Entry(o.String(like, "like"))
		if source == nil {
			o.Bad(like, "like: unknown entry %q: name one of the table as provider/name", like.Text)
			return
		}
		match, aliases := e.Match, e.Aliases
		e = *source
		e.Match, e.Aliases, e.Price, e.Sources = match, aliases, nil, nil
		e.Context, e.ContextBeta, e.Input, e.Output = 0, 0, 0, 0
	}
	e.ID, e.Provider = id.Text, provider // not those of like
	before := len(o.Errs)
	o.decode(n, &e)
	if len(o.Errs) > before {
		return
	}
	if err := e.check(); err != nil {
		o.Bad(n, "%s: %v", id.Text, err)
		return
	}
	if at >= 0 {
		entries[at] = &e
	} else {
		entries = append(entries, &e)
	}
	o.entries[provider] = entries
}

// decode reads the fields of an entry. A field replaces the whole fact.
func (o *override) decode(n *configfile.Node, e *Entry) {
	fields := map[string]any{
		"vendor": &e.Vendor, "match": &e.Match, "aliases": &e.Aliases,
		"context": &e.Context, "context_beta": &e.ContextBeta, "input": &e.Input, "output": &e.Output,
		"inputs": &e.Inputs, "tools": &e.Tools, "parallel": &e.Parallel, "strict": &e.Strict, "schema": &e.Schema,
		"reasoning": &e.Reasoning, "refuses": &e.Refuses, "refuses_reasoning": &e.RefusesReasoning, "refuses_together": &e.RefusesTogether,
		"ignores": &e.Ignores, "ignores_reasoning": &e.IgnoresReasoning, "forced_choice": &e.ForcedChoice, "temperature": &e.Temperature,
		"floating": &e.Floating, "status": &e.Status, "retires": &e.Retires, "price": &e.Price, "sources": &e.Sources,
	}
	readers := map[string]func(*configfile.Node){"id": func(*configfile.Node) {}, "like": func(*configfile.Node) {}}
	for key, to := range fields {
		readers[key] = func(v *configfile.Node) {
			reflect.ValueOf(to).Elem().SetZero() // the old value is shared
			d := json.NewDecoder(bytes.NewReader(o.JSON(v, key)))
			d.DisallowUnknownFields()
			if err := d.Decode(to); err != nil {
				o.Bad(v, "%s: %v", key, err)
			}
		}
	}
	o.Fields(n, "model "+e.ID, readers)
}
