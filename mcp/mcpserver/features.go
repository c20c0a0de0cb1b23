package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/tool"
)

// Resource is data that clients can read. Resources do not take the steps of a tool call: Read
// must check for itself what the caller may see, with [CallerFrom].
type Resource struct {
	URI, Name, Title, Description, MIME string
	// Size is the size in bytes; zero means unknown.
	Size int64
	Read func(ctx context.Context, uri string) ([]Content, error)
}

// ResourceTemplate is a family of resources. The template has variables in braces: {name}
// matches text without a slash, {+name} any text.
type ResourceTemplate struct {
	Template, Name, Title, Description, MIME string
	// Read returns the content of a resource, or [ErrNoResource].
	Read func(ctx context.Context, uri string, vars map[string]string) ([]Content, error)
}

// ErrNoResource reports that a resource does not exist.
var ErrNoResource = errors.New("mcpserver: the resource does not exist")

// Prompt is a text with arguments that users of a client select. Get may ask questions with
// [Ask].
type Prompt struct {
	Name, Title, Description string
	Arguments                []PromptArgument
	Get                      func(ctx context.Context, arguments map[string]string) ([]PromptMessage, error)
}

// PromptArgument is an argument of a prompt.
type PromptArgument struct {
	Name, Title, Description string
	Required                 bool
}

// PromptMessage is one message of a prompt. Content is a content block of the protocol, such as
// {"type":"text","text":"…"}; if it is nil, Text is sent.
type PromptMessage struct {
	// Role is "user" or "assistant"; empty means "user".
	Role    string
	Text    string
	Content json.RawMessage
}

// Completion asks for values of an argument.
type Completion struct {
	// Prompt is the name of a prompt, or Template a URI template.
	Prompt, Template string
	Argument, Value  string
	// Arguments are those that are already known.
	Arguments map[string]string
}

// Skills serves skills: folders with a file SKILL.md and others.
type Skills interface {
	// List returns all skills, always in the same order.
	List(ctx context.Context) ([]Skill, error)
	// Read returns the content of a file of a skill by its URI, or [ErrNoResource].
	Read(ctx context.Context, uri string) (Content, error)
}

// Skill describes one skill.
type Skill struct {
	// URI is the URI of SKILL.md, such as "skill://refunds/SKILL.md". The folder has the name
	// of the skill.
	URI string
	// Frontmatter is the front matter of SKILL.md as a JSON object.
	Frontmatter json.RawMessage
	// Files are all files of the skill, with SKILL.md.
	Files []SkillFile
}

// SkillFile is a file of a skill.
type SkillFile struct {
	URI, MIME string
	Size      int64
	Digest    [sha256.Size]byte
}

// features are the resources and prompts of a server.
type features struct {
	resources []Resource
	templates []ResourceTemplate
	prompts   []Prompt
	patterns  []*regexp.Regexp
}

func (f *features) check() error {
	var wrong []error
	seen := map[string]bool{}
	once := func(kind, name string) {
		if name == "" {
			wrong = append(wrong, fmt.Errorf("mcpserver: a %s has no name", kind))
		} else if seen[kind+name] {
			wrong = append(wrong, fmt.Errorf("mcpserver: two of kind %s have the name %q", kind, name))
		}
		seen[kind+name] = true
	}
	for _, r := range f.resources {
		once("resource", r.URI)
		if r.Read == nil {
			wrong = append(wrong, fmt.Errorf("mcpserver: the resource %q has no function Read", r.URI))
		}
	}
	f.patterns = nil
	for _, t := range f.templates {
		once("template", t.Template)
		re, err := templatePattern(t.Template)
		if err != nil || t.Read == nil {
			wrong = append(wrong, fmt.Errorf("mcpserver: the template %q cannot be served: it needs a valid pattern and a function Read", t.Template))
		}
		f.patterns = append(f.patterns, re)
	}
	for _, p := range f.prompts {
		once("prompt", p.Name)
		if p.Get == nil {
			wrong = append(wrong, fmt.Errorf("mcpserver: the prompt %q has no function Get", p.Name))
		}
	}
	return errors.Join(wrong...)
}

var variable = regexp.MustCompile(`\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}`)

func templatePattern(template string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString("^")
	rest := template
	for {
		at := variable.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		b.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		match := `[^/]+`
		if at[3] > at[2] {
			match = `.+`
		}
		b.WriteString("(?P<" + rest[at[4]:at[5]] + ">" + match + ")")
		rest = rest[at[1]:]
	}
	if strings.ContainsAny(rest, "{}") {
		return nil, errors.New("unknown expression")
	}
	b.WriteString(regexp.QuoteMeta(rest) + "$")
	return regexp.Compile(b.String())
}

func elements[T any](list []T, f func(T) json.RawMessage) json.RawMessage {
	w := jsonwire.Writer{}
	w.BeginArray()
	for _, v := range list {
		w.Known(f(v))
	}
	w.EndArray()
	return w.Buf
}

// described returns an object with fields that are left out if they are empty.
func described(first, value, name, title, description, mime string) json.RawMessage {
	pairs := []string{first, value}
	for _, f := range [...][2]string{{"name", name}, {"title", title}, {"description", description}, {"mimeType", mime}} {
		if f[1] != "" {
			pairs = append(pairs, f[0], f[1])
		}
	}
	return object(pairs...)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (s *Server) listResources(ctx context.Context, in *request) (mcp.Result, error) {
	if !s.hasResources {
		return nil, notFound(in.method)
	}
	list := s.static.Load().resources
	if s.o.Skills != nil {
		skills, err := s.skills(ctx, in)
		if err != nil {
			return nil, err
		}
		list = slices.Clone(list)
		for _, k := range skills {
			list = append(list, k.resource())
		}
	}
	part, next, err := page(list, in.cursor, s.o.PageSize)
	if err != nil {
		return nil, err
	}
	return listResult(in.modern, "resources", elements(part, func(r Resource) json.RawMessage {
		o := described("uri", r.URI, or(r.Name, r.URI), r.Title, r.Description, r.MIME)
		if r.Size > 0 {
			o = jsonwire.With(o, "size", encode(r.Size))
		}
		return o
	}), next), nil
}

func (s *Server) listTemplates(in *request) (mcp.Result, error) {
	if !s.hasResources {
		return nil, notFound(in.method)
	}
	part, next, err := page(s.static.Load().templates, in.cursor, s.o.PageSize)
	if err != nil {
		return nil, err
	}
	return listResult(in.modern, "resourceTemplates", elements(part, func(t ResourceTemplate) json.RawMessage {
		return described("uriTemplate", t.Template, or(t.Name, t.Template), t.Title, t.Description, t.MIME)
	}), next), nil
}

// reader returns the function that reads a URI, or nil.
func (s *Server) reader(uri string) func(context.Context) ([]Content, error) {
	f := s.static.Load()
	for _, r := range f.resources {
		if r.URI == uri {
			return func(ctx context.Context) ([]Content, error) { return r.Read(ctx, uri) }
		}
	}
	for i, t := range f.templates {
		m := f.patterns[i].FindStringSubmatch(uri)
		if m == nil {
			continue
		}
		vars := map[string]string{}
		for j, name := range f.patterns[i].SubexpNames() {
			if name != "" {
				vars[name] = m[j]
			}
		}
		return func(ctx context.Context) ([]Content, error) { return t.Read(ctx, uri, vars) }
	}
	if s.o.Skills != nil {
		return func(ctx context.Context) ([]Content, error) {
			c, err := s.o.Skills.Read(ctx, uri)
			return []Content{c}, err
		}
	}
	return nil
}

// maySubscribe refuses subscriptions to resources that do not exist.
func (s *Server) maySubscribe(uri string) error {
	if s.reader(uri) == nil {
		return invalidParams("unknown resource")
	}
	return nil
}

func (s *Server) noResource(in *request) error {
	err := invalidParams("resource not found")
	if !in.modern {
		err.Code = codeResourceNotFound
	}
	err.Data = encode(map[string]string{"uri": in.uri})
	return err
}

func (s *Server) readResource(ctx context.Context, in *request) (mcp.Result, error) {
	if !s.hasResources {
		return nil, notFound(in.method)
	}
	read := s.reader(in.uri)
	if read == nil {
		return nil, s.noResource(in)
	}
	var contents []Content
	res, err := s.answering(ctx, in, in.uri, nil, func(ctx context.Context) (err error) {
		contents, err = read(ctx)
		return err
	})
	switch {
	case errors.Is(err, ErrNoResource) || err == nil && res == nil && len(contents) == 0:
		return nil, s.noResource(in)
	case res != nil || err != nil:
		return res, err
	}
	r := newResult(in.modern).add("contents", elements(contents, func(c Content) json.RawMessage { return c.json(in.uri) }))
	return r.private(in.modern), nil
}

func (s *Server) listPrompts(in *request) (mcp.Result, error) {
	if !s.hasPrompts {
		return nil, notFound(in.method)
	}
	part, next, err := page(s.static.Load().prompts, in.cursor, s.o.PageSize)
	if err != nil {
		return nil, err
	}
	return listResult(in.modern, "prompts", elements(part, func(p Prompt) json.RawMessage {
		o := described("name", p.Name, "", p.Title, p.Description, "")
		if len(p.Arguments) > 0 {
			o = jsonwire.With(o, "arguments", elements(p.Arguments, func(a PromptArgument) json.RawMessage {
				return jsonwire.With(described("name", a.Name, "", a.Title, a.Description, ""), "required", encode(a.Required))
			}))
		}
		return o
	}), next), nil
}

func (s *Server) getPrompt(ctx context.Context, in *request) (mcp.Result, error) {
	if !s.hasPrompts {
		return nil, notFound(in.method)
	}
	prompts := s.static.Load().prompts
	i := slices.IndexFunc(prompts, func(p Prompt) bool { return p.Name == in.name })
	if i < 0 {
		return nil, invalidParams(fmt.Sprintf("unknown prompt %q", in.name))
	}
	p := prompts[i]
	args := map[string]string{}
	if len(in.arguments) > 0 && json.Unmarshal(in.arguments, &args) != nil {
		return nil, invalidParams("the arguments of a prompt are an object of strings")
	}
	for _, a := range p.Arguments {
		if _, ok := args[a.Name]; a.Required && !ok {
			return nil, invalidParams(fmt.Sprintf("the prompt %q needs the argument %q", p.Name, a.Name))
		}
	}
	var messages []PromptMessage
	res, err := s.answering(ctx, in, in.name, in.arguments, func(ctx context.Context) (err error) {
		messages, err = p.Get(ctx, maps.Clone(args))
		return err
	})
	if res != nil || err != nil {
		return res, err
	}
	r := newResult(in.modern)
	if p.Description != "" {
		r.set("description", p.Description)
	}
	r.add("messages", elements(messages, func(m PromptMessage) json.RawMessage {
		content := m.Content
		if content == nil || jsonwire.Check(content) != nil {
			content = object("type", "text", "text", m.Text)
		}
		return jsonwire.With(object("role", or(m.Role, "user")), "content", content)
	}))
	return r, nil
}

// answering runs a function of a prompt or resource that may ask questions. A result is a
// question to the client.
func (s *Server) answering(ctx context.Context, in *request, name string, params json.RawMessage, f func(context.Context) error) (res mcp.Result, err error) {
	c := s.newCall(ctx, in)
	c.id = ""
	c.setEarly(in)
	st := &state{Subject: in.method + " " + name, Params: hashParams(name, params)}
	if in.state != "" {
		if st, err = s.openState(in.caller.Principal.ID, in.state, st.Subject, st.Params); err != nil {
			return nil, err
		}
		st.answer(in.responses) // reading has no effect, so the state may be used again
	}
	ctx = context.WithValue(ctx, contextKey{}, c)
	for range maxRounds {
		if len(st.Open) > 0 {
			if res, done, err := s.askOpen(ctx, c, st); done {
				return res, err
			}
			continue
		}
		c.rounds, c.round = slices.Clone(st.Rounds), 0
		err := guarded(ctx, f)
		var wait *tool.Suspended
		var missing *missingCapability
		var mine askState
		var wire *jsonrpc.Error
		switch {
		case errors.As(err, &wait) && json.Unmarshal(wait.State, &mine) == nil:
			st.Rounds, st.Open = slices.Clone(c.rounds), map[string]asked{}
			for key, q := range mine.Asking {
				st.Open[key] = asked{Question: q}
			}
			continue
		case errors.As(err, &missing) && in.modern:
			return nil, missing.rpc()
		case err == nil || errors.Is(err, ErrNoResource) || errors.As(err, &wire):
			return nil, err
		}
		return nil, s.internal(in.method+" failed", err)
	}
	return nil, rpcError(jsonrpc.CodeInternalError, "too many questions")
}

// guarded turns a panic into an error.
func guarded(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f(ctx)
}

func (s *Server) complete(ctx context.Context, in *request, q Completion) (mcp.Result, error) {
	if s.o.Complete == nil {
		return nil, notFound(in.method)
	}
	var values []string
	err := guarded(context.WithValue(ctx, contextKey{}, s.newCall(ctx, in)), func(ctx context.Context) (err error) {
		values, err = s.o.Complete(ctx, q)
		return err
	})
	if err != nil {
		return nil, s.internal("the completion failed", err)
	}
	const limit = 100 // of the protocol
	total := len(values)
	if values = values[:min(total, limit)]; values == nil {
		values = []string{}
	}
	return newResult(in.modern).set("completion", map[string]any{"values": values, "total": total, "hasMore": total > limit}), nil
}

const (
	skillsExtension  = "io.modelcontextprotocol/skills"
	methodSkillsList = "skills/list"
	methodSkillsGet  = "skills/get"
	methodDirectory  = "resources/directory/read"
)

// NewSkill describes a skill whose files are in memory, by their path within its folder, such as
// "SKILL.md". The URI of a file is "skill://name/path".
func NewSkill(name string, frontmatter json.RawMessage, files map[string][]byte) Skill {
	k := Skill{URI: "skill://" + name + "/SKILL.md", Frontmatter: frontmatter}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		k.Files = append(k.Files, SkillFile{URI: "skill://" + name + "/" + p, Size: int64(len(files[p])), Digest: sha256.Sum256(files[p]), MIME: mimeOf(p)})
	}
	return k
}

func mimeOf(name string) string {
	switch path.Ext(name) {
	case ".md":
		return "text/markdown"
	case ".json":
		return "application/json"
	case ".txt", ".py", ".sh", ".js", ".go", ".yaml", ".yml", ".csv":
		return "text/plain"
	}
	return "application/octet-stream"
}

// resource describes SKILL.md in the list of resources.
func (k Skill) resource() Resource {
	var front struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	_ = json.Unmarshal(k.Frontmatter, &front)
	r := Resource{URI: k.URI, Name: front.Name, Description: front.Description, MIME: mimeOf(k.URI)}
	for _, f := range k.Files {
		if f.URI == k.URI {
			r.Size = f.Size
		}
	}
	return r
}

func (k Skill) json() json.RawMessage {
	w := jsonwire.Writer{}
	w.BeginObject()
	w.StringField("uri", k.URI)
	front := k.Frontmatter
	if len(front) == 0 {
		front = json.RawMessage(`{}`)
	}
	w.RawField("frontmatter", front)
	w.Key("resources")
	w.BeginArray()
	for _, f := range k.Files {
		w.BeginObject()
		w.StringField("uri", f.URI)
		w.StringField("digest", "sha256:"+hex.EncodeToString(f.Digest[:]))
		w.IntField("size", f.Size)
		w.EndObject()
	}
	w.EndArray()
	w.EndObject()
	return w.Buf
}

func (s *Server) skills(ctx context.Context, in *request) ([]Skill, error) {
	if s.o.Skills == nil {
		return nil, notFound(in.method)
	}
	var list []Skill
	err := guarded(context.WithValue(ctx, contextKey{}, s.newCall(ctx, in)), func(ctx context.Context) (err error) {
		list, err = s.o.Skills.List(ctx)
		return err
	})
	if err != nil {
		return nil, s.internal("listing the skills failed", err)
	}
	return list, nil
}

func (s *Server) listSkills(ctx context.Context, in *request) (mcp.Result, error) {
	list, err := s.skills(ctx, in)
	if err != nil {
		return nil, err
	}
	part, next, err := page(list, in.cursor, s.o.PageSize)
	if err != nil {
		return nil, err
	}
	return listResult(in.modern, "skills", elements(part, Skill.json), next), nil
}

func (s *Server) getSkill(ctx context.Context, in *request) (mcp.Result, error) {
	list, err := s.skills(ctx, in)
	if err != nil {
		return nil, err
	}
	for _, k := range list {
		if k.URI == in.uri {
			return newResult(in.modern).add("skill", k.json()).private(in.modern), nil
		}
	}
	return nil, invalidParams("unknown skill")
}

// readDirectory lists what is directly in a folder of a skill.
func (s *Server) readDirectory(ctx context.Context, in *request) (mcp.Result, error) {
	list, err := s.skills(ctx, in)
	if err != nil {
		return nil, err
	}
	folder := strings.TrimSuffix(in.uri, "/") + "/"
	found := map[string]json.RawMessage{}
	for _, k := range list {
		for _, f := range k.Files {
			rest, ok := strings.CutPrefix(f.URI, folder)
			if !ok || rest == "" {
				continue
			}
			name, _, deeper := strings.Cut(rest, "/")
			if deeper {
				found[name] = described("uri", folder+name, name, "", "", "inode/directory")
			} else {
				o := described("uri", f.URI, name, "", "", f.MIME)
				found[name] = jsonwire.With(o, "size", encode(f.Size))
			}
		}
	}
	if len(found) == 0 {
		return nil, invalidParams("unknown directory")
	}
	names := slices.Sorted(maps.Keys(found))
	part, next, err := page(names, in.cursor, s.o.PageSize)
	if err != nil {
		return nil, err
	}
	return listResult(in.modern, "resources", elements(part, func(n string) json.RawMessage { return found[n] }), next), nil
}
