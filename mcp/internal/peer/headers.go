package peer

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// headerArgument is an argument that is repeated in a header, so that proxies can route by it.
type headerArgument struct {
	path   []string
	header string
}

// maxDepth limits the nesting of schemas that are searched for header annotations.
const maxDepth = 64

// setHeaders stores the header annotations of tools. A tool with an invalid annotation is
// dropped over HTTP, alone (quirk H16).
func (p *Peer) setHeaders(l *link, list *Listing) {
	if !p.cfg.HTTP || !l.modern() {
		return
	}
	all := map[string][]headerArgument{}
	list.Items = slices.DeleteFunc(list.Items, func(item json.RawMessage) bool {
		m := fields(item)
		found, err := headerArguments(m["inputSchema"])
		if err != nil {
			list.Dropped = append(list.Dropped, Dropped{nameOf(item), err.Error()})
			return true
		}
		if len(found) > 0 {
			all[jsonwire.Unquote(m["name"])] = found
		}
		return false
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.headers = all
}

// headerArguments returns the annotated arguments of a schema.
func headerArguments(schema json.RawMessage) ([]headerArgument, error) {
	if !strings.Contains(string(schema), "x-mcp-header") {
		return nil, nil
	}
	var out []headerArgument
	if err := collectHeaders(schema, nil, true, 0, &out); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, a := range out {
		name := strings.ToLower(a.header)
		if seen[name] {
			return nil, fmt.Errorf("x-mcp-header %q is used twice", a.header)
		}
		seen[name] = true
	}
	return out, nil
}

// collectHeaders walks a schema. reachable says that only properties keywords lead to it.
func collectHeaders(schema json.RawMessage, path []string, reachable bool, depth int, out *[]headerArgument) error {
	if depth > maxDepth {
		return fmt.Errorf("its schema is nested deeper than %d levels", maxDepth)
	}
	if len(schema) > 0 && schema[0] == '[' {
		r := jsonwire.NewReader(schema)
		for range r.Array() {
			if err := collectHeaders(r.Raw(), path, false, depth+1, out); err != nil {
				return err
			}
		}
		return nil
	}
	if !isObject(schema) {
		return nil
	}
	r := jsonwire.NewReader(schema)
	m := fields(schema)
	if raw, ok := m["x-mcp-header"]; ok {
		name := jsonwire.Unquote(raw)
		kind := jsonwire.Unquote(m["type"])
		switch {
		case !isToken(name):
			return fmt.Errorf("x-mcp-header %.60s is not the name of a header", raw)
		case !reachable || len(path) == 0:
			return fmt.Errorf("x-mcp-header %q is not on a property", name)
		case kind != "string" && kind != "integer" && kind != "boolean":
			return fmt.Errorf("x-mcp-header %q is on a value that is not a string, an integer or a boolean", name)
		}
		*out = append(*out, headerArgument{slices.Clone(path), name})
	}
	for key := range r.Object() {
		name := string(key)
		value := r.Raw()
		switch name {
		case "default", "const", "enum", "examples":
			continue
		case "properties":
			inner := jsonwire.NewReader(value)
			if inner.Kind() != '{' {
				continue
			}
			for prop := range inner.Object() {
				at := append(slices.Clone(path), string(prop))
				if err := collectHeaders(inner.Raw(), at, reachable, depth+1, out); err != nil {
					return err
				}
			}
		default:
			if err := collectHeaders(value, path, false, depth+1, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// isToken reports whether s is a token of HTTP.
func isToken(s string) bool {
	if s == "" || len(s) > 200 {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// argumentHeaders returns the headers of a call. Their values are not encoded yet.
func (p *Peer) argumentHeaders(tool string, arguments json.RawMessage) map[string]string {
	p.mu.Lock()
	annotated := p.headers[tool]
	p.mu.Unlock()
	var out map[string]string
	for _, a := range annotated {
		value := arguments
		for _, name := range a.path {
			value = fields(value)[name]
		}
		text, ok := headerText(value)
		if !ok {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out["Mcp-Param-"+a.header] = text
	}
	return out
}

// headerText returns the text of a scalar.
func headerText(raw json.RawMessage) (string, bool) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", false
	case raw[0] == '"':
		return jsonwire.Unquote(raw), true
	case string(raw) == "true" || string(raw) == "false":
		return string(raw), true
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		if len(raw) > 64 {
			return "", false
		}
		n, ok := new(big.Rat).SetString(string(raw))
		if !ok || !n.IsInt() || n.Num().BitLen() > 64 {
			return "", false
		}
		return n.Num().String(), true
	default:
		return "", false
	}
}
