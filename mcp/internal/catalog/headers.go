package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

const headerKeyword = "x-mcp-header"

// headerParams returns the arguments that HTTP requests repeat as headers. It returns an error
// if an annotation breaks the rules of the protocol: the name is an HTTP token, unique in the
// tool whatever its case, on a string, integer or boolean that is reached through properties
// only.
func headerParams(tree any) ([]HeaderParam, error) {
	root, ok := tree.(map[string]any)
	if !ok {
		return nil, nil
	}
	var out []HeaderParam
	seen := map[string]bool{}
	var visit func(object map[string]any, path []string, direct bool) error
	visit = func(object map[string]any, path []string, direct bool) error {
		if v, ok := object[headerKeyword]; ok {
			name, _ := v.(string)
			kind, _ := object["type"].(string)
			where := textkit.Visible(clip(strings.Join(path, ".")))
			switch {
			case !isToken(name):
				return fmt.Errorf("parameter %q: %s is not the name of a header", where, headerKeyword)
			case !direct || len(path) == 0:
				return fmt.Errorf("%s %q is on a schema that is not reached through properties only", headerKeyword, name)
			case kind != "string" && kind != "integer" && kind != "boolean":
				return fmt.Errorf("parameter %q: %s needs the type string, integer or boolean", where, headerKeyword)
			case seen[strings.ToLower(name)]:
				return fmt.Errorf("two parameters have the %s %q", headerKeyword, name)
			}
			seen[strings.ToLower(name)] = true
			out = append(out, HeaderParam{Path: slices.Clone(path), Header: name, Type: kind})
		}
		var err error
		children("", object, func(at string, v any, keyword string) {
			child, ok := v.(map[string]any)
			if !ok || err != nil {
				return
			}
			if keyword == "properties" {
				err = visit(child, append(slices.Clone(path), unescapeLast(at)), direct)
			} else {
				err = visit(child, path, false)
			}
		})
		return err
	}
	if err := visit(root, nil, true); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b HeaderParam) int { return strings.Compare(a.Header, b.Header) })
	return out, nil
}

// unescapeLast returns the last token of a JSON pointer.
func unescapeLast(pointer string) string {
	return unescapePointer(pointer[strings.LastIndexByte(pointer, '/')+1:])
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		if !textkit.InSet("a-zA-Z0-9", s[i]) && strings.IndexByte("!#$%&'*+-.^_`|~", s[i]) < 0 {
			return false
		}
	}
	return true
}
