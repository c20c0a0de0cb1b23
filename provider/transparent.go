package provider

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/provider/extension"
)

// Transparent reports whether [Client.Pass] may send a request that is in the client's dialect
// and that the model's API accepts. This is the case if
//
//   - no extension that is on, or that a tool would turn on, changes requests or responses,
//   - the client has no contributions, capabilities or think tags of its own.
//
// Known facts about models by name do not count: they describe what the APIs refuse. An empty
// model means the client's own, which is checked only once.
func (c *Client) Transparent(_ context.Context, model string) bool {
	if c.Model == "" {
		return c.checkTransparent(model)
	}
	c.transparentOnce.Do(func() { c.transparent = c.checkTransparent(c.Model) })
	return c.transparent
}

func (c *Client) checkTransparent(model string) bool {
	if c.ThinkTags != thinkTagsOff || len(c.Contributions) > 0 || c.Override != nil {
		return false
	}
	if c.Capabilities != nil && !reflect.DeepEqual(c.Capabilities(model), c.tableCapabilities(model)) {
		return false
	}
	x := newExchange(c, nil, false)
	x.model = model
	base := x.tags()
	// Tags that depend on the tools of a request are not known here.
	if c.Extensions.TagsFor != nil || slices.ContainsFunc(c.Extensions.Set.All(), addsTags) {
		return false
	}
	tools := append(slices.Concat(c.Extensions.tagsWithPrefix(formatTag), c.Extensions.tagsWithPrefix(toolTag)), toolsTag)
	for _, more := range [][]extension.Tag{nil, {toolsTag}, tools} {
		r, err := c.Extensions.Set.ResolveFor(slices.Concat(base, more), c.Extensions.Switches, x.setup())
		if err != nil || !r.Idle() {
			return false
		}
	}
	return true
}

// tagsWithPrefix returns the tags with a prefix that extensions require or forbid.
func (e *Extensions) tagsWithPrefix(prefix string) []extension.Tag {
	var out []extension.Tag
	for _, ext := range e.Set.All() {
		info := ext.Info()
		for _, t := range slices.Concat(info.Requires, info.Forbids) {
			if strings.HasPrefix(string(t), prefix) {
				out = append(out, t)
			}
		}
	}
	return out
}

// addsTags reports whether the tags of an extension depend on the request.
func addsTags(e extension.Extension) bool {
	_, ok := e.(interface {
		Tags(env extension.Env) []extension.Tag
	})
	return ok
}
