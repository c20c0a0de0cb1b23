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

// Settings of an extension that is off do nothing, and who wrote them thinks that
// they do. Where they never can, because of who serves the model, opening it fails;
// where that depends on the model or the request, each request reports it. Who
// switched the extension off knows.

// unused are the extensions that have settings and are off, in the order of their set.
func unused(r *extension.Resolution, sw extension.Switches, config map[string]json.RawMessage) (out []extension.Reason) {
	for _, why := range r.Why {
		if _, set := config[why.Name]; set && !why.On && !slices.Contains(sw.Off, why.Name) {
			out = append(out, why)
		}
	}
	return out
}

// checkSettings refuses settings of extensions that there are not, and of those that
// no request to this provider can switch on.
func checkSettings(provider string, set *extension.Set, tags []extension.Tag, s *Settings) error {
	r, err := set.Resolve(tags, s.Switches)
	if err != nil {
		return err
	}
	if name := unknownExtension(set, s.Extensions); name != "" {
		return &SettingError{Setting: "extensions of the provider " + provider, Reason: fmt.Sprintf("there is no extension %q", name)}
	}
	for _, why := range unused(r, s.Switches, s.Extensions) {
		if neverOn(set, why.Name, r) {
			return &SettingError{
				Setting: "extensions of the provider " + provider,
				Reason:  fmt.Sprintf("the settings of %s would do nothing, because it is off here (%s): is the type of the provider right?", why.Name, why.Text),
			}
		}
	}
	return nil
}

// unknownExtension is the first name of settings that no extension has; empty where
// there is none.
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

// neverOn reports whether an extension that is off stays so whatever the model and the
// request are: it waits to be switched on, or for another server or dialect.
func neverOn(set *extension.Set, name string, r *extension.Resolution) bool {
	all := set.All()
	info := all[slices.IndexFunc(all, func(e extension.Extension) bool { return e.Info().Name == name })].Info()
	fixed := func(t extension.Tag) bool {
		return strings.HasPrefix(string(t), "server:") || strings.HasPrefix(string(t), "dialect:")
	}
	provided := func(t extension.Tag) bool { // by an extension that may yet be on
		return slices.ContainsFunc(all, func(e extension.Extension) bool { return slices.Contains(e.Info().Provides, t) })
	}
	return info.OptIn ||
		slices.ContainsFunc(info.Requires, func(t extension.Tag) bool { return fixed(t) && !r.Has(t) && !provided(t) }) ||
		slices.ContainsFunc(info.Forbids, func(t extension.Tag) bool { return fixed(t) && r.Has(t) && !provided(t) })
}

// reportUnused reports settings that this request makes no use of.
func (x *exchange) reportUnused() {
	e := &x.client.Extensions
	if len(e.Config) == 0 {
		return
	}
	for _, why := range unused(x.extended.Resolution, e.Switches, e.Config) {
		x.extended.Report.Addf(dragoman.Dropped, dragoman.Warn, "",
			"the settings of the extension %s do nothing, because it is off for this request: %s", why.Name, why.Text)
	}
}
