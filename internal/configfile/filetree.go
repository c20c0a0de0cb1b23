package configfile

import (
	"bytes"
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

// maxDepth limits the nesting of a file. maxTokens limits the tokens of a YAML file,
// because its parser takes quadratic time.
const (
	maxDepth  = 64
	maxTokens = 50_000
)

// maxNames limits the fields of one YAML mapping: the parser recurses for each and
// copies the ones that follow, so it takes quadratic time. JSON has no such limit.
const maxNames = 2000

// Node is a value of a file, with its position.
type Node struct {
	Line, Column int
	Kind         Kind
	// Text is the value of a string, and the spelling of a number or boolean.
	Text  string
	Items []*Node
	// Keys are the field names of a mapping, in the order of Items.
	Keys []*Node
}

// Kind is the type of a value.
type Kind int

// The kinds of value.
const (
	Null Kind = iota
	String
	Bool
	Number
	List
	Map
	// Wrong is a value that was already refused.
	Wrong
)

func (k Kind) String() string {
	return [...]string{"nothing", "a text", "true or false", "a number", "a list", "a mapping", "an invalid value"}[k]
}

// Error describes a problem in a file and its position.
type Error struct {
	Line, Column int
	Reason       string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason) }

// Read reads JSON if the file begins with a brace, and YAML otherwise. It skips a byte
// order mark, which some editors write. If the tree is nil, the errors say why;
// otherwise they describe the values that are [Wrong].
func Read(data []byte) (*Node, []*Error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return readYAML(data)
	}
	root, err := readJSON(data)
	if err != nil {
		return nil, []*Error{err}
	}
	return root, nil
}

// position returns the line and column of a byte, both from 1. The column counts
// characters.
func position(data []byte, offset int) (line, column int) {
	before := string(data[:min(max(offset, 0), len(data))])
	last := strings.LastIndexByte(before, '\n')
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[last+1:]) + 1
}

// invalidText returns an error for text that is not UTF-8.
func invalidText(data []byte) *Error {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			line, column := position(data, i)
			return &Error{Line: line, Column: column, Reason: "the text is not UTF-8"}
		}
		i += n
	}
	return nil
}

// readJSON reads a JSON file.
func readJSON(data []byte) (*Node, *Error) {
	if err := invalidText(data); err != nil {
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
		return nil, &Error{Line: line, Column: column, Reason: reason}
	}
	t.places(root)
	return root, nil
}

type jsonTree struct {
	data []byte
	r    *jsonwire.Reader
}

// value reads the next value. Its column is the offset, until places is called.
func (t *jsonTree) value(depth int) *Node {
	n := &Node{Column: t.next()}
	if depth > maxDepth {
		t.r.Fail(fmt.Errorf("nested more than %d deep", maxDepth))
		return n
	}
	switch t.r.Kind() {
	case '{':
		n.Kind = Map
		for key := range t.r.Object() {
			n.Keys = append(n.Keys, &Node{Kind: String, Text: string(key), Column: t.keyStart()})
			n.Items = append(n.Items, t.value(depth+1))
		}
	case '[':
		n.Kind = List
		for range t.r.Array() {
			n.Items = append(n.Items, t.value(depth+1))
		}
	case '"':
		n.Kind, n.Text = String, t.r.String()
	case 't', 'f':
		n.Kind, n.Text = Bool, "false"
		if t.r.Bool() {
			n.Text = "true"
		}
	case '0':
		n.Kind, n.Text = Number, t.r.Number()
	default:
		t.r.Skip()
	}
	return n
}

// next returns the offset at which the next value begins.
func (t *jsonTree) next() int {
	at := int(t.r.Offset())
	for at < len(t.data) && strings.IndexByte(" \t\r\n,:", t.data[at]) >= 0 {
		at++
	}
	return at
}

// keyStart returns the offset of the name that was just read.
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

// places converts the increasing offsets of a tree to lines and columns in one pass
// over the file.
func (t *jsonTree) places(root *Node) {
	line, column, at := 1, 1, 0
	set := func(n *Node) {
		for ; at < n.Column; at++ {
			switch {
			case t.data[at] == '\n':
				line, column = line+1, 1
			case utf8.RuneStart(t.data[at]):
				column++
			}
		}
		n.Line, n.Column = line, column
	}
	var walk func(*Node)
	walk = func(n *Node) {
		set(n)
		for i, item := range n.Items {
			if n.Kind == Map {
				set(n.Keys[i])
			}
			walk(item)
		}
	}
	walk(root)
}

// readYAML reads a YAML file.
func readYAML(data []byte) (root *Node, errs []*Error) {
	if err := invalidText(data); err != nil {
		return nil, []*Error{err}
	}
	y := yamlTree{}
	defer func() {
		// A panic of the parser is an error in the file.
		if v := recover(); v != nil {
			root, errs = nil, []*Error{{Line: 1, Column: 1, Reason: "not valid YAML"}}
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if at, why := limitExceeded(tokens); at != nil {
		return nil, []*Error{y.wrong(at, "%s", why)}
	}
	if len(tokens) > maxTokens {
		return nil, []*Error{y.wrong(tokens[maxTokens], "the file is too long for YAML; write it as JSON, or shorten it")}
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, []*Error{y.syntax(err)}
	}
	switch {
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return nil, []*Error{{Line: 1, Column: 1, Reason: "the file is empty: begin with version: 1"}}
	case len(file.Docs) > 1:
		return nil, []*Error{y.wrong(file.Docs[1].Start, "a second document begins here, but a file must contain one: remove this --- or what follows it")}
	}
	root = y.node(file.Docs[0].Body)
	return root, y.errs
}

// limitExceeded returns the token at which a file exceeds the limits of the parser, which
// recurses for nested values and for values in a row, and the reason.
func limitExceeded(tokens token.Tokens) (at *token.Token, why string) {
	var blocks outline
	brackets, entries, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position == nil {
			continue
		}
		if t.Position.Line != line {
			line, entries = t.Position.Line, 0
		}
		names := 0
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType:
			entries++
			blocks.at(t.Position.Column)
		case token.AnchorType, token.TagType, token.AliasType:
			entries++
		case token.MappingValueType:
			if name := t.Prev; brackets == 0 && name != nil && name.Position != nil {
				b := blocks.at(name.Position.Column)
				b.names++
				names = b.names
			}
		}
		switch {
		case brackets > maxDepth || entries > maxDepth || len(blocks) > maxDepth:
			return t, fmt.Sprintf("nested more than %d deep", maxDepth)
		case names > maxNames:
			return t.Prev, fmt.Sprintf("a mapping has more than %d fields: write the file as JSON", maxNames)
		}
	}
	return nil, ""
}

// outline is the stack of block-style lists and mappings around a position in a file.
// As in YAML, their columns distinguish them.
type outline []block

type block struct{ column, names int }

// at returns the block of an item at a column. It ends the blocks further to the right.
func (o *outline) at(column int) *block {
	blocks := *o
	for len(blocks) > 0 && blocks[len(blocks)-1].column > column {
		blocks = blocks[:len(blocks)-1]
	}
	if len(blocks) == 0 || blocks[len(blocks)-1].column < column {
		blocks = append(blocks, block{column: column})
	}
	*o = blocks
	return &blocks[len(blocks)-1]
}

type yamlTree struct {
	// errs are the errors of values that were refused; their nodes are Wrong.
	errs []*Error
}

func (y *yamlTree) wrong(at *token.Token, format string, args ...any) *Error {
	e := &Error{Line: 1, Column: 1, Reason: fmt.Sprintf(format, args...)}
	if at != nil && at.Position != nil {
		e.Line, e.Column = at.Position.Line, at.Position.Column
	}
	return e
}

// refuse records what is wrong with a node.
func (y *yamlTree) refuse(n *Node, at *token.Token, format string, args ...any) {
	n.Kind = Wrong
	y.errs = append(y.errs, y.wrong(at, format, args...))
}

// syntax converts an error of the parser.
func (y *yamlTree) syntax(err error) *Error {
	var e yaml.Error
	if !errors.As(err, &e) {
		return y.wrong(nil, "%v", err)
	}
	if text := e.GetMessage(); !strings.Contains(text, "\t") && !strings.Contains(text, "tab character") {
		return y.wrong(e.GetToken(), "%s", text)
	}
	return y.wrong(e.GetToken(), "tab character found; indent YAML with spaces")
}

// node converts a value. It refuses YAML features beyond JSON, except for comments and
// text styles.
func (y *yamlTree) node(v ast.Node) *Node {
	n := &Node{Line: 1, Column: 1}
	if v == nil {
		return n
	}
	at := v.GetToken()
	if at != nil && at.Position != nil {
		n.Line, n.Column = at.Position.Line, at.Position.Column
	}
	switch v := v.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		n.Kind, n.Text = String, v.Value
	case *ast.LiteralNode:
		n.Kind, n.Text = String, v.Value.Value
	case *ast.BoolNode:
		n.Kind, n.Text = Bool, fmt.Sprint(v.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		n.Kind, n.Text = Number, at.Value
		if !json.Valid([]byte(n.Text)) {
			y.refuse(n, at, "write the number %s as in JSON, or put it in quotes", clip(n.Text))
		}
	case *ast.MappingValueNode:
		y.mapping(n, []*ast.MappingValueNode{v})
	case *ast.MappingNode:
		y.mapping(n, v.Values)
	case *ast.SequenceNode:
		n.Kind = List
		for _, item := range v.Values {
			n.Items = append(n.Items, y.node(item))
		}
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		y.refuse(n, at, "anchors, aliases, tags and merge keys are not allowed here")
	default:
		y.refuse(n, at, "%s is not allowed here", v.Type().YAMLName())
	}
	return n
}

func (y *yamlTree) mapping(n *Node, values []*ast.MappingValueNode) {
	n.Kind = Map
	for i, v := range values {
		key := y.node(v.Key)
		if key.Kind != String && key.Kind != Wrong {
			y.refuse(key, v.Key.GetToken(), "a field name must be a text: put it in quotes")
		}
		if i == 0 { // the mapping begins at its first name
			n.Line, n.Column = key.Line, key.Column
		}
		item := y.node(v.Value)
		if key.Kind == String {
			n.Keys, n.Items = append(n.Keys, key), append(n.Items, item)
		}
	}
}

// clip shortens a text for a message.
func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}
