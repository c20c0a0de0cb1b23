package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// maxDepth bounds the nesting of a policy file.
const maxDepth = 64

// position is the line and column of a byte, both from 1, the column in
// characters.
func position(data []byte, offset int) (line, column int) {
	before := string(data[:min(max(offset, 0), len(data))])
	last := strings.LastIndexByte(before, '\n')
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[last+1:]) + 1
}

// invalidText finds text that is not UTF-8.
func invalidText(name string, data []byte) error {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			line, column := position(data, i)
			return &FileError{File: name, Line: line, Column: column, Reason: "the text is not UTF-8"}
		}
		i += n
	}
	return nil
}

// readJSON reads a file of JSON.
func readJSON(name string, data []byte) (*node, error) {
	if err := invalidText(name, data); err != nil {
		return nil, err
	}
	t := jsonTree{data: data, r: jsonwire.NewReader(data)}
	root := t.value(0)
	if err := t.r.End(); err != nil {
		at, reason := int(t.r.Offset()), err.Error()
		var place *jsonwire.Error
		switch {
		case errors.Is(err, jsonwire.ErrTrailing):
			at, reason = t.next(), jsonwire.ErrTrailing.Error()
		case errors.As(err, &place):
			at, reason = int(place.Offset), place.Err.Error()
		}
		line, column := position(data, at)
		return nil, &FileError{File: name, Line: line, Column: column, Reason: reason}
	}
	t.places(root)
	return root, nil
}

type jsonTree struct {
	data []byte
	r    *jsonwire.Reader
}

// value reads the next value. Its column is the offset, until places.
func (t *jsonTree) value(depth int) *node {
	n := &node{column: t.next()}
	if depth > maxDepth {
		t.r.Fail(fmt.Errorf("nested more than %d deep", maxDepth))
		return n
	}
	switch t.r.Kind() {
	case '{':
		n.kind = kindMap
		for key := range t.r.Object() {
			n.keys = append(n.keys, &node{kind: kindString, text: string(key), column: t.keyStart()})
			n.items = append(n.items, t.value(depth+1))
		}
	case '[':
		n.kind = kindList
		for range t.r.Array() {
			n.items = append(n.items, t.value(depth+1))
		}
	case '"':
		n.kind, n.text = kindString, t.r.String()
	case 't', 'f':
		n.kind, n.text = kindBool, "false"
		if t.r.Bool() {
			n.text = "true"
		}
	case '0':
		n.kind, n.text = kindNumber, t.r.Number()
	default:
		t.r.Skip()
	}
	return n
}

// next is the offset at which the next value begins.
func (t *jsonTree) next() int {
	at := int(t.r.Offset())
	for at < len(t.data) && strings.IndexByte(" \t\r\n,:", t.data[at]) >= 0 {
		at++
	}
	return at
}

// keyStart is the offset of the name that was just read.
func (t *jsonTree) keyStart() int {
	for at := int(t.r.Offset()) - 2; at >= 0; at-- {
		if t.data[at] != '"' {
			continue
		}
		escapes := 0
		for at-1-escapes >= 0 && t.data[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
	return 0
}

// places turns the offsets of a tree, which grow, into lines and columns in one
// pass over the file.
func (t *jsonTree) places(root *node) {
	line, column, at := 1, 1, 0
	set := func(n *node) {
		for ; at < n.column; at++ {
			switch {
			case t.data[at] == '\n':
				line, column = line+1, 1
			case utf8.RuneStart(t.data[at]):
				column++
			}
		}
		n.line, n.column = line, column
	}
	var walk func(*node)
	walk = func(n *node) {
		set(n)
		for i, item := range n.items {
			if n.kind == kindMap {
				set(n.keys[i])
			}
			walk(item)
		}
	}
	walk(root)
}

// readYAML reads a file of YAML.
func readYAML(name string, data []byte) (root *node, errs []error) {
	if err := invalidText(name, data); err != nil {
		return nil, []error{err}
	}
	y := yamlTree{file: name}
	defer func() {
		// The parser's surprises are errors of the file.
		if v := recover(); v != nil {
			root, errs = nil, []error{&FileError{File: name, Line: 1, Column: 1, Reason: "it cannot be read as YAML"}}
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if at := tooDeep(tokens); at != nil {
		return nil, []error{y.wrong(at, "nested more than %d deep", maxDepth)}
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, []error{y.syntax(err)}
	}
	switch {
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return nil, []error{&FileError{File: name, Line: 1, Column: 1, Reason: "the file is empty; write version: 1"}}
	case len(file.Docs) > 1:
		return nil, []error{y.wrong(file.Docs[1].Body.GetToken(), "there is more than one document")}
	}
	root = y.node(file.Docs[0].Body)
	return root, y.errs
}

// tooDeep returns the token at which a file is nested too deeply: the parser
// recurses.
func tooDeep(tokens token.Tokens) *token.Token {
	brackets, entries, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position != nil && t.Position.Line != line {
			line, entries = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType, token.AliasType:
			entries++
		}
		if brackets > maxDepth || entries > maxDepth || t.Position != nil && t.Position.IndentLevel > maxDepth {
			return t
		}
	}
	return nil
}

type yamlTree struct {
	file string
	// errs are what was refused; the nodes are kindWrong.
	errs []error
}

func (y *yamlTree) wrong(at *token.Token, format string, args ...any) error {
	e := &FileError{File: y.file, Line: 1, Column: 1, Reason: fmt.Sprintf(format, args...)}
	if at != nil && at.Position != nil {
		e.Line, e.Column = at.Position.Line, at.Position.Column
	}
	return e
}

// refuse notes what is wrong with a node.
func (y *yamlTree) refuse(n *node, at *token.Token, format string, args ...any) {
	n.kind = kindWrong
	y.errs = append(y.errs, y.wrong(at, format, args...))
}

// syntax gives an error of the parser our form.
func (y *yamlTree) syntax(err error) error {
	var e yaml.Error
	if errors.As(err, &e) {
		return y.wrong(e.GetToken(), "%s", e.GetMessage())
	}
	return y.wrong(nil, "%v", err)
}

// node turns a value into ours. What YAML has beyond JSON is refused, comments and
// its ways of writing text apart.
func (y *yamlTree) node(v ast.Node) *node {
	n := &node{line: 1, column: 1}
	if v == nil {
		return n
	}
	at := v.GetToken()
	if at != nil && at.Position != nil {
		n.line, n.column = at.Position.Line, at.Position.Column
	}
	switch v := v.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		n.kind, n.text = kindString, v.Value
	case *ast.LiteralNode:
		n.kind, n.text = kindString, v.Value.Value
	case *ast.BoolNode:
		n.kind, n.text = kindBool, fmt.Sprint(v.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		n.kind, n.text = kindNumber, at.Value
		if !json.Valid([]byte(n.text)) {
			y.refuse(n, at, "write the number %s as JSON does, or put it in quotes", clip(n.text))
		}
	case *ast.MappingValueNode:
		y.mapping(n, []*ast.MappingValueNode{v})
	case *ast.MappingNode:
		y.mapping(n, v.Values)
	case *ast.SequenceNode:
		n.kind = kindList
		for _, item := range v.Values {
			n.items = append(n.items, y.node(item))
		}
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		y.refuse(n, at, "anchors, aliases, tags and merge keys are not allowed here")
	default:
		y.refuse(n, at, "%s is not allowed here", v.Type().YAMLName())
	}
	return n
}

func (y *yamlTree) mapping(n *node, values []*ast.MappingValueNode) {
	n.kind = kindMap
	for i, v := range values {
		key := y.node(v.Key)
		if key.kind != kindString && key.kind != kindWrong {
			y.refuse(key, v.Key.GetToken(), "a name must be a text; put it in quotes")
		}
		if i == 0 { // the mapping begins where its first name does
			n.line, n.column = key.line, key.column
		}
		item := y.node(v.Value)
		if key.kind == kindString {
			n.keys, n.items = append(n.keys, key), append(n.items, item)
		}
	}
}
