package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// Settings of an extension that is off have no effect, which their author may not expect. If
// the provider can never turn the extension on, opening the model fails. If that depends on the
// model or the request, each request reports a loss. If the user switched the extension off,
// nothing is reported.

// unused returns the extensions that have settings but are off, in the order of their set.
func unused(r *extension.Resolution, sw extension.Switches, config map[string]json.RawMessage) (out []extension.Reason) {
	for _, why := range r.Why {
		if _, set := config[why.Name]; set && !why.On && !slices.Contains(sw.Off, why.Name) {
			out = append(out, why)
		}
	}
	return out
}

// checkSettings rejects settings of unknown extensions, and of extensions that no request to
// this provider can turn on.
func checkSettings(provider string, set *extension.Set, tags []extension.Tag, s *Settings) error {
	r, err := set.Resolve(tags, s.Switches)
	if err != nil {
		return err
	}
	if name := unknownExtension(set, s.Extensions); name != "" {
		return &SettingError{Setting: "extensions of the provider " + provider, Reason: fmt.Sprintf("unknown extension %q", name)}
	}
	for _, why := range unused(r, s.Switches, s.Extensions) {
		if neverOn(set, why.Name, r) {
			return &SettingError{
				Setting: "extensions of the provider " + provider,
				Reason:  fmt.Sprintf("the settings of %s have no effect, because it is off for this provider (%s): check the type of the provider", why.Name, why.Text),
			}
		}
	}
	return nil
}

// unknownExtension returns the first name in config that no extension has; empty if all are
// known.
func unknownExtension(set *extension.Set, config map[string]json.RawMessage) string {
	if len(config) == 0 {
		return ""
	}
	all := set.All()
	for _, name := range slices.Sorted(maps.Keys(config)) {
		if !slices.ContainsFunc(all, func(e extension.Extension) bool { return e.Info().Name == name }) {
			return name
		}
	}
	return ""
}

// neverOn reports whether an extension that is off stays off whatever the model and the request
// are: it is off by default, or requires another server or dialect.
func neverOn(set *extension.Set, name string, r *extension.Resolution) bool {
	all := set.All()
	info := all[slices.IndexFunc(all, func(e extension.Extension) bool { return e.Info().Name == name })].Info()
	fixed := func(t extension.Tag) bool {
		return strings.HasPrefix(string(t), "server:") || strings.HasPrefix(string(t), "dialect:")
	}
	provided := func(t extension.Tag) bool { // by an extension that may still be turned on
		return slices.ContainsFunc(all, func(e extension.Extension) bool { return slices.Contains(e.Info().Provides, t) })
	}
	return info.OptIn ||
		slices.ContainsFunc(info.Requires, func(t extension.Tag) bool { return fixed(t) && !r.Has(t) && !provided(t) }) ||
		slices.ContainsFunc(info.Forbids, func(t extension.Tag) bool { return fixed(t) && r.Has(t) && !provided(t) })
}

// reportUnused reports settings that this request does not use.
func (x *exchange) reportUnused() {
	e := &x.client.Extensions
	if len(e.Config) == 0 {
		return
	}
	for _, why := range unused(x.extended.Resolution, e.Switches, e.Config) {
		x.extended.Report.Addf(dragoman.Dropped, dragoman.Warn, "",
			"the settings of the extension %s have no effect, because it is off for this request: %s", why.Name, why.Text)
	}
}
