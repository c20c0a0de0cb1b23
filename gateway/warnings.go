package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/provider"
)

// warnings returns settings that are valid but probably mistakes: keys that allow models that
// are not served, and providers without a credential. Credentials are read again with every
// request: if one is missing, the other models can still be served.
func (r *reader) warnings(file string, root *node) (out []*provider.FileError) {
	warn := func(at *node, format string, args ...any) {
		out = append(out, &provider.FileError{File: file, Line: at.Line, Column: at.Column, Reason: fmt.Sprintf(format, args...)})
	}
	reported := unsetKeys(root, warn)
	if len(r.config.Routes) == 0 {
		r.impliedModelRefs(root)
	}
	for _, l := range r.modelRefs {
		for _, client := range clientsOf(l.model) {
			why := missingCredential(client)
			if why != "" && !slices.Contains(reported, client.Name) {
				reported = append(reported, client.Name)
				warn(l.at, "the provider %s cannot be used: %s", client.Name, why)
			}
		}
	}
	r.warnUnserved(warn)
	if r.hostsAt != nil && len(r.config.Keys) > 0 {
		warn(r.hostsAt, "hosts: the list has no effect, because with keys every host name is accepted; remove it, or remove the keys")
	}
	for _, w := range r.mcpWarnings {
		out = append(out, &provider.FileError{File: w.File, Line: w.Line, Reason: "mcp: " + strings.TrimSpace(w.Server+" "+w.Text)})
	}
	sortFileErrors(out)
	return out
}

// warnUnserved warns of models that a key allows and no route serves.
func (r *reader) warnUnserved(warn func(at *node, format string, args ...any)) {
	if len(r.allowed) == 0 {
		return
	}
	var patterns []string
	for _, route := range r.config.Served() {
		patterns = append(patterns, route.Pattern)
	}
	for _, name := range r.allowed {
		if !slices.ContainsFunc(patterns, func(p string) bool { return textkit.GlobsOverlap(p, name.Text) }) {
			warn(name, "models: no route serves %.80q, so this key cannot use it: routes are %s", name.Text, joinSome(patterns))
		}
	}
}

// joinSome lists names, up to a readable number.
func joinSome(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// unsetKeys warns of environment variables for provider keys that are not set, and returns
// their providers.
func unsetKeys(root *node, warn func(at *node, format string, args ...any)) (out []string) {
	providers := fieldOf(root, "providers")
	for i, p := range providers.Keys {
		at := fieldOf(providers.Items[i], "api_key_env")
		variables := (&configfile.Reader{}).Strings(at, "")
		set := func(name string) bool { return strings.TrimSpace(os.Getenv(name)) != "" }
		if len(variables) == 0 || slices.ContainsFunc(variables, set) {
			continue
		}
		out = append(out, p.Text)
		if slices.ContainsFunc(variables, func(v string) bool { return !variableName.MatchString(v) }) { // it may be the key itself
			warn(at, "provider %s: api_key_env: want the name of an environment variable: letters, digits and _", p.Text)
			continue
		}
		warn(at, "provider %s: api_key_env: the environment variable %s is not set", p.Text, strings.Join(variables, " or "))
	}
	return out
}

// fieldOf returns the value of a field of a mapping; an empty node if the field is missing.
func fieldOf(n *node, name string) *node {
	for i, key := range n.Keys {
		if key.Text == name {
			return n.Items[i]
		}
	}
	return &node{}
}

// impliedModelRefs records the aliases and providers if they are what is served.
func (r *reader) impliedModelRefs(root *node) {
	check := r.specChecker()
	aliases := fieldOf(root, "aliases")
	for i, key := range aliases.Keys {
		check(aliases.Items[i], key.Text)
	}
	for _, key := range fieldOf(root, "providers").Keys {
		check(key, key.Text+"/*")
	}
}

// clientsOf returns the clients of an opened model or chain.
func clientsOf(model any) (out []*provider.Client) {
	switch m := model.(type) {
	case *provider.Client:
		out = append(out, m)
	case *provider.Chain:
		for _, link := range m.Links {
			out = append(out, clientsOf(link.Model)...)
		}
	}
	return out
}

// missingCredential returns the reason why a client cannot authorize requests, or "". It asks the
// client for its credential, which such a client reads from the environment only.
func missingCredential(client *provider.Client) string {
	if client.Auth == nil {
		return ""
	}
	ctx := context.Background()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/", http.NoBody)
	if err != nil {
		return ""
	}
	var missing *provider.MissingKeyError
	var setting *provider.SettingError
	switch err := client.Auth.Authorize(ctx, req, nil); {
	case errors.As(err, &missing):
		return missing.Error()
	case errors.As(err, &setting):
		return setting.Setting + ": " + setting.Reason
	default:
		return ""
	}
}
