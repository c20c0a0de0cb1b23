package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// AddToConfig adds a server to a file that [ReadConfig] reads, and leaves the rest of the file
// unchanged, with its comments. A missing file is created: in the form of VS Code in a folder
// .vscode, as mcp_servers if the name ends with .yaml or .yml, and as mcpServers otherwise. A
// server that the file already has is an error. A setting that the form of the file has no
// field for is one, too.
func AddToConfig(path string, s Server) error {
	return editConfigFile(path, true, func(data []byte) ([]byte, error) { return addServer(path, data, s) })
}

// RemoveFromConfig removes a server from a file that [ReadConfig] reads, and leaves the rest of
// the file unchanged. A server that the file does not have is an error.
func RemoveFromConfig(path, name string) error {
	return editConfigFile(path, false, func(data []byte) ([]byte, error) { return removeServer(path, data, name) })
}

// editConfigFile replaces a file atomically by its edited content.
func editConfigFile(path string, create bool, edit func([]byte) ([]byte, error)) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := fs.FileMode(0o600) // the file may have credentials
	data, err := readConfigFile(path)
	switch {
	case err == nil:
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode().Perm()
		}
	case !create || !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if data, err = edit(data); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".mcp-*")
	if err != nil {
		return fmt.Errorf("mcp: write %s: %w", path, err)
	}
	_, err = next.Write(data)
	err = errors.Join(err, next.Chmod(mode), next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		_ = os.Remove(next.Name())
		return fmt.Errorf("mcp: write %s: %w", path, err)
	}
	return nil
}

// configShape is a file of servers before an edit.
type configShape struct {
	file, section string
	data          []byte
	servers       []Server
	root          *configfile.Node
	node          *configfile.Node // the section; nil if the file has none
	yaml          bool
}

// shapeOf reads a file for an edit. Variables are not replaced.
func shapeOf(path string, data []byte) (*configShape, error) {
	c := &configShape{file: path, data: data, section: sectionClaude}
	ext := strings.ToLower(filepath.Ext(path))
	c.yaml = ext == ".yaml" || ext == ".yml"
	switch {
	case c.yaml:
		c.section = sectionOwn
	case filepath.Base(filepath.Dir(path)) == ".vscode":
		c.section = sectionVSCode
	}
	if len(bytes.TrimSpace(data)) == 0 {
		c.data = nil
		return c, nil
	}
	plain := plainJSON(data)
	c.yaml = !bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(plain, []byte("\ufeff")), " \t\r\n"), []byte("{"))
	if c.yaml && bytes.Count(data, []byte("\r")) != bytes.Count(data, []byte("\r\n")) {
		return nil, c.failf("the file has unusual line ends: edit it by hand")
	}
	root, errs := configfile.Read(plain)
	p := configParser{file: path, raw: true}
	if root == nil || len(errs) > 0 {
		_, _, err := p.parse(data)
		return nil, err
	}
	c.root = root
	listed := slices.ContainsFunc(root.Keys, func(k *configfile.Node) bool {
		return slices.Contains([]string{sectionClaude, sectionVSCode, sectionOwn}, k.Text)
	})
	for i, k := range root.Keys {
		listed = listed || k.Text == settingsMCP && slices.ContainsFunc(root.Items[i].Keys, func(k *configfile.Node) bool { return k.Text == sectionVSCode })
	}
	if !listed {
		if root.Kind != configfile.Map {
			return nil, &ConfigError{File: path, Line: root.Line, Reason: "the file is not a mapping"}
		}
		if c.yaml {
			c.section = sectionOwn
		}
		return c, nil
	}
	s, ok := (&configParser{file: path, raw: true}).findSection(root)
	servers, _, err := p.parse(data)
	if err != nil || !ok {
		return nil, err
	}
	c.section, c.node, c.servers = s.name, s.node, servers
	return c, nil
}

func (c *configShape) has(name string) bool {
	return slices.ContainsFunc(c.servers, func(s Server) bool { return s.Name == name })
}

func (c *configShape) failf(format string, args ...any) error {
	return fmt.Errorf("mcp: %s: %s", c.file, fmt.Sprintf(format, args...))
}

// addServer returns the content of a file with one more server.
func addServer(path string, data []byte, s Server) ([]byte, error) {
	c, err := shapeOf(path, data)
	if err != nil {
		return nil, err
	}
	s.Name = s.Label()
	if c.has(s.Name) {
		return nil, c.failf("the file already has a server %q: remove it first, or choose another name", s.Name)
	}
	fields, err := c.fieldsOf(s)
	if err != nil {
		return nil, err
	}
	var out []byte
	if c.yaml {
		out, err = c.addYAML(s.Name, fields)
	} else {
		out, err = c.addJSON(s.Name, fields)
	}
	if err != nil {
		return nil, err
	}
	return out, c.check(out, append(slices.Clone(c.servers), s))
}

// removeServer returns the content of a file without a server.
func removeServer(path string, data []byte, name string) ([]byte, error) {
	c, err := shapeOf(path, data)
	if err != nil {
		return nil, err
	}
	if !c.has(name) {
		names := make([]string, len(c.servers))
		for i, s := range c.servers {
			names[i] = s.Name
		}
		return nil, c.failf("the file has no server %q%s", name, textkit.Suggest(name, names))
	}
	var out []byte
	if c.yaml {
		out, err = c.removeYAML(name)
	} else {
		out, err = c.removeJSON(name)
	}
	if err != nil {
		return nil, err
	}
	return out, c.check(out, slices.DeleteFunc(slices.Clone(c.servers), func(s Server) bool { return s.Name == name }))
}

// check reads the edited file again, so that no edit damages it.
func (c *configShape) check(out []byte, want []Server) error {
	p := configParser{file: c.file, raw: true}
	have, _, err := p.parse(out)
	if err == nil {
		for i := range have {
			have[i].source = nil
		}
		for i := range want {
			want[i] = want[i].clone()
			want[i].source = nil
		}
		normalize := func(list []Server) []Server {
			for i, s := range list {
				list[i] = emptyToNil(s)
			}
			return list
		}
		if len(have) == len(want) && (len(have) == 0 || reflect.DeepEqual(normalize(have), normalize(want))) {
			return nil
		}
	}
	return c.failf("the file cannot be edited in its form: edit it by hand")
}

// emptyToNil returns a server without empty lists and maps.
func emptyToNil(s Server) Server {
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.CanSet() && (f.Kind() == reflect.Slice || f.Kind() == reflect.Map) && f.Len() == 0 {
			f.SetZero()
		}
	}
	return s
}

// configField is one field of a server in a file. The value is JSON.
type configField struct{ name, value string }

// fieldsOf returns the fields of a server in the form of the file.
func (c *configShape) fieldsOf(s Server) ([]configField, error) {
	var out []configField
	add := func(name string, set bool, value func(w *jsonwire.Writer)) {
		if set {
			var w jsonwire.Writer
			value(&w)
			out = append(out, configField{name, string(w.Buf)})
		}
	}
	text := func(name, v string) { add(name, v != "", func(w *jsonwire.Writer) { w.String(v) }) }
	list := func(name string, v []string) {
		add(name, len(v) > 0, func(w *jsonwire.Writer) {
			w.BeginArray()
			for _, e := range v {
				w.String(e)
			}
			w.EndArray()
		})
	}
	pairs := func(name string, v map[string]string) {
		add(name, len(v) > 0, func(w *jsonwire.Writer) {
			w.BeginObject()
			for _, k := range sortedNames(v) {
				w.QuotedKey(k)
				w.String(v[k])
			}
			w.EndObject()
		})
	}
	boolean := func(name string, v bool) { add(name, v, func(w *jsonwire.Writer) { w.Bool(true) }) }
	wait := func(name string, v time.Duration) {
		add(name, v != 0, func(w *jsonwire.Writer) { w.String(v.String()) })
	}

	own := c.section == sectionOwn
	switch {
	case own:
	case s.URL != "":
		text("type", "http")
	case c.section == sectionVSCode:
		text("type", "stdio")
	}
	text("command", s.Command)
	list("args", s.Args)
	pairs("env", s.Env)
	text("url", s.URL)
	pairs("headers", s.Headers)
	boolean("disabled", s.Disabled)
	if !own {
		text("cwd", s.Dir)
		rest := emptyToNil(s)
		rest.Name, rest.Command, rest.Args, rest.Env, rest.Dir, rest.URL, rest.Headers, rest.Disabled, rest.source = "", "", nil, nil, "", "", nil, false, nil
		v := reflect.ValueOf(rest)
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				return nil, c.failf("the form %s has no field for %s: use a file with %s", c.section, v.Type().Field(i).Name, sectionOwn)
			}
		}
		return out, nil
	}
	text("dir", s.Dir)
	list("include", s.Include)
	list("exclude", s.Exclude)
	boolean("prefix", s.Prefix)
	text("namespace", s.Namespace)
	boolean("deferred", s.Deferred)
	pairs("approval", s.Approval)
	boolean("trusted", s.Trusted)
	list("retry", s.Retry)
	wait("connect_timeout", s.ConnectTimeout)
	wait("call_timeout", s.CallTimeout)
	wait("max_call_time", s.MaxCallTime)
	add("parallel", s.Parallel != 0, func(w *jsonwire.Writer) { w.Int(int64(s.Parallel)) })
	text("revision", s.Revision)
	return out, nil
}

// lineEnd returns the line end of the file.
func (c *configShape) lineEnd() string {
	if bytes.Contains(c.data, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// jsonField is a field of an object in a file, with its offsets.
type jsonField struct {
	name                 string
	start                int // of the name
	valueStart, valueEnd int
}

// jsonObject is an object in a file.
type jsonObject struct {
	fields      []jsonField
	open, close int // the offsets of the brackets
}

// objectAt reads the object at an offset of a JSON text.
func objectAt(plain []byte, open int) (o jsonObject, ok bool) {
	o.open = open
	r := jsonwire.NewReader(plain[open:])
	if r.Kind() != '{' {
		return o, false
	}
	at := open + 1
	for key := range r.Object() {
		f := jsonField{name: string(key)}
		for f.start = at; f.start < len(plain) && plain[f.start] != '"'; {
			f.start++
		}
		raw := r.Raw()
		f.valueEnd = open + int(r.Offset())
		f.valueStart = f.valueEnd - len(raw)
		at = f.valueEnd
		o.fields = append(o.fields, f)
	}
	if r.Err() != nil {
		return o, false
	}
	o.close = at + bytes.IndexByte(plain[at:], '}')
	return o, o.close >= at
}

func (o *jsonObject) field(name string) *jsonField {
	for i := range o.fields {
		if o.fields[i].name == name {
			return &o.fields[i]
		}
	}
	return nil
}

// jsonSection returns the object that lists the servers, and the one around it.
func (c *configShape) jsonSection(plain []byte) (root, servers jsonObject, ok bool) {
	start := bytes.IndexByte(plain, '{')
	if root, ok = objectAt(plain, start); !ok {
		return root, servers, false
	}
	f := root.field(c.section)
	if f == nil {
		outer := root.field(settingsMCP)
		if outer == nil {
			return root, servers, false
		}
		inner, isObject := objectAt(plain, outer.valueStart)
		if f = inner.field(c.section); !isObject || f == nil {
			return root, servers, false
		}
	}
	servers, ok = objectAt(plain, f.valueStart)
	return root, servers, ok
}

// addJSON adds a server to a JSON file.
func (c *configShape) addJSON(name string, fields []configField) ([]byte, error) {
	eol := c.lineEnd()
	if c.data == nil {
		return []byte("{" + eol + "  " + quote(c.section) + ": {" + eol + jsonEntry(name, fields, "    ", "  ", eol) + eol + "  }" + eol + "}" + eol), nil
	}
	plain := plainJSON(c.data)
	root, servers, ok := c.jsonSection(plain)
	switch {
	case ok:
		indent, unit := c.indentOf(&servers)
		return c.insert(&servers, jsonEntry(name, fields, indent, unit, eol), indent, unit), nil
	case c.node != nil:
		return nil, c.failf("%s is not an object: edit it by hand", c.section)
	}
	indent, unit := c.indentOf(&root)
	entry := indent + quote(c.section) + ": {" + eol + jsonEntry(name, fields, indent+unit, unit, eol) + eol + indent + "}"
	return c.insert(&root, entry, indent, unit), nil
}

func quote(s string) string { return string(configfile.Quote(s)) }

// jsonEntry returns a server as a field, with a line for each of its fields.
func jsonEntry(name string, fields []configField, indent, unit, eol string) string {
	var b strings.Builder
	b.WriteString(indent + quote(name) + ": {" + eol)
	for i, f := range fields {
		b.WriteString(indent + unit + quote(f.name) + ": " + f.value)
		if i < len(fields)-1 {
			b.WriteString(",")
		}
		b.WriteString(eol)
	}
	b.WriteString(indent + "}")
	return b.String()
}

// indentOf returns the indentation of the fields of an object, and one step of it.
func (c *configShape) indentOf(o *jsonObject) (indent, unit string) {
	own := c.lineIndent(o.open)
	if len(o.fields) > 0 {
		inner := c.lineIndent(o.fields[0].start)
		if step, ok := strings.CutPrefix(inner, own); ok && step != "" {
			return inner, step
		}
	}
	unit = "  "
	if strings.Contains(own, "\t") {
		unit = "\t"
	}
	return own + unit, unit
}

// lineIndent returns the white space at the beginning of the line of an offset.
func (c *configShape) lineIndent(at int) string {
	start := bytes.LastIndexByte(c.data[:at], '\n') + 1
	end := start
	for end < at && (c.data[end] == ' ' || c.data[end] == '\t') {
		end++
	}
	return string(c.data[start:end])
}

// insert adds a field at the end of an object. The comments of the object stay where they are.
func (c *configShape) insert(o *jsonObject, entry, indent, unit string) []byte {
	eol := c.lineEnd()
	var edits []jsonwire.Edit
	if n := len(o.fields); n > 0 {
		end := o.fields[n-1].valueEnd
		if _, comma := c.nextComma(end); comma {
			entry += "," // the file ends its objects with one
		} else {
			edits = append(edits, jsonwire.Edit{Start: int64(end), End: int64(end), New: []byte(",")})
		}
	}
	line := bytes.LastIndexByte(c.data[:o.close], '\n') + 1
	at, text := o.close, eol+entry+eol+strings.TrimSuffix(indent, unit)
	if line > o.open && strings.TrimSpace(string(c.data[line:o.close])) == "" {
		at, text = line, entry+eol
	}
	edits = append(edits, jsonwire.Edit{Start: int64(at), End: int64(at), New: []byte(text)})
	return jsonwire.Splice(c.data, edits...)
}

// nextComma returns the offset after the comma that follows a value.
func (c *configShape) nextComma(end int) (after int, ok bool) {
	bare := blankComments(c.data) // has the trailing commas
	for i := end; i < len(bare); i++ {
		switch bare[i] {
		case ' ', '\t', '\r', '\n':
		case ',':
			return i + 1, true
		default:
			return 0, false
		}
	}
	return 0, false
}

// removeJSON removes a server from a JSON file.
func (c *configShape) removeJSON(name string) ([]byte, error) {
	plain := plainJSON(c.data)
	_, servers, ok := c.jsonSection(plain)
	f := servers.field(name)
	if !ok || f == nil {
		return nil, c.failf("the file cannot be edited in its form: edit it by hand")
	}
	start, end := f.start, f.valueEnd
	after, comma := c.nextComma(end)
	var edits []jsonwire.Edit
	if comma {
		end = after
	} else if i := slices.IndexFunc(servers.fields, func(o jsonField) bool { return o.name == name }); i > 0 {
		// The field before it is now the last one: its comma goes, too.
		if at, ok := c.nextComma(servers.fields[i-1].valueEnd); ok {
			edits = append(edits, jsonwire.Edit{Start: int64(at - 1), End: int64(at)})
		}
	}
	// The whole lines, if nothing else is on them.
	line := bytes.LastIndexByte(c.data[:start], '\n') + 1
	next := len(c.data)
	if n := bytes.IndexByte(c.data[end:], '\n'); n >= 0 {
		next = end + n + 1
	}
	if line > servers.open && strings.TrimSpace(string(c.data[line:start])) == "" && strings.TrimSpace(string(c.data[end:next])) == "" {
		start, end = line, next
	}
	edits = append(edits, jsonwire.Edit{Start: int64(start), End: int64(end)})
	return jsonwire.Splice(c.data, edits...), nil
}

// The form of our section in YAML.
const yamlUnit = "  "

// yamlLines returns the lines of the file with their line ends.
func (c *configShape) yamlLines() []string {
	lines := strings.SplitAfter(string(c.data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// yamlSection returns the line of the section and the line after its last content, from 0.
func (c *configShape) yamlSection(lines []string) (first, end int) {
	first, end = -1, len(lines)
	for _, k := range c.root.Keys {
		switch {
		case k.Text == c.section:
			first = k.Line - 1
		case first >= 0 && k.Line-1 > first:
			end = min(end, k.Line-1)
		}
	}
	return first, contentEnd(lines, first, end)
}

// contentEnd returns the line after the last one that is neither empty nor a comment.
func contentEnd(lines []string, first, end int) int {
	for end > first+1 {
		if text := strings.TrimSpace(lines[end-1]); text != "" && !strings.HasPrefix(text, "#") {
			break
		}
		end--
	}
	return end
}

// addYAML adds a server to a YAML file.
func (c *configShape) addYAML(name string, fields []configField) ([]byte, error) {
	eol := c.lineEnd()
	if c.node == nil {
		text := string(c.data)
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += eol
		}
		return []byte(text + sectionOwn + ":" + eol + yamlEntry(name, fields, yamlUnit, eol)), nil
	}
	lines := c.yamlLines()
	first, end := c.yamlSection(lines)
	indent := yamlUnit
	if len(c.node.Keys) > 0 {
		if c.node.Keys[0].Line-1 <= first {
			return nil, c.failf("%s is written in one line: edit it by hand", c.section)
		}
		indent = strings.Repeat(" ", c.node.Keys[0].Column-1)
	} else if rest := strings.TrimSpace(lines[first]); rest == c.section+": {}" {
		lines[first] = c.section + ":" + eol
	}
	if !strings.HasSuffix(lines[end-1], "\n") {
		lines[end-1] += eol
	}
	return []byte(strings.Join(lines[:end], "") + yamlEntry(name, fields, indent, eol) + strings.Join(lines[end:], "")), nil
}

// yamlEntry returns a server in YAML. Values are JSON, which is also YAML.
func yamlEntry(name string, fields []configField, indent, eol string) string {
	var b strings.Builder
	key := quote(name)
	if isVariable(strings.NewReplacer("-", "_").Replace(name)) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(name)) {
		key = name
	}
	b.WriteString(indent + key + ":" + eol)
	for _, f := range fields {
		b.WriteString(indent + yamlUnit + f.name + ": " + f.value + eol)
	}
	return b.String()
}

// removeYAML removes a server from a YAML file.
func (c *configShape) removeYAML(name string) ([]byte, error) {
	lines := c.yamlLines()
	section, end := c.yamlSection(lines)
	first := -1
	for _, k := range c.node.Keys {
		switch {
		case k.Text == name:
			first = k.Line - 1
		case first >= 0 && k.Line-1 > first:
			end = min(end, k.Line-1)
		}
	}
	if first <= section {
		return nil, c.failf("%s is written in one line: edit it by hand", c.section)
	}
	end = contentEnd(lines, first, end)
	return []byte(strings.Join(lines[:first], "") + strings.Join(lines[end:], "")), nil
}
