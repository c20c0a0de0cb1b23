package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Media is stored once, in a separate entry. Messages, native histories and the journal
// refer to it by the hash of its content. Loaded messages contain the references, which are
// expanded when a request is built.

// minAttachment is the size in bytes from which the content of media is stored as an
// attachment. Shorter content stays in its message.
const minAttachment = 1 << 10

// rawPrefix marks a reference within the native form of a message.
const rawPrefix = "dragoman-attachment:"

// attachment is the body of an entry of kind "attachment": one of the fields of a
// [dragoman.Media] that hold content.
type attachment struct {
	V      int    `json:"v"`
	Base64 string `json:"base64,omitempty"`
	Text   string `json:"text,omitempty"`
	URL    string `json:"url,omitempty"`
}

func attachmentKey(name string) string { return "attachment:" + name }

// contentOf returns the attachment for media, or nil if its content is not stored as one.
func contentOf(m *dragoman.Media) *attachment {
	switch {
	case m.Attachment != "":
		return nil
	case len(m.Base64) >= minAttachment:
		return &attachment{V: bodyVersion, Base64: m.Base64}
	case len(m.Text) >= minAttachment:
		return &attachment{V: bodyVersion, Text: m.Text}
	case len(m.URL) >= minAttachment && strings.HasPrefix(m.URL, "data:"):
		return &attachment{V: bodyVersion, URL: m.URL}
	default:
		return nil
	}
}

// value returns the content.
func (a *attachment) value() string { return a.Base64 + a.Text + a.URL }

// name returns the reference to the attachment: the hash of its content.
func (a *attachment) name() string {
	h := sha256.New()
	for _, s := range []string{a.Base64, a.Text, a.URL} {
		fmt.Fprintf(h, "%d ", len(s))
		h.Write([]byte(s))
	}
	return "att_" + hex.EncodeToString(h.Sum(nil)[:16])
}

func (a *attachment) entry(name string) (Entry, error) {
	var w jsonwire.Writer
	w.BeginObject()
	w.IntField("v", int64(a.V))
	w.StringFieldIf("base64", a.Base64)
	w.StringFieldIf("text", a.Text)
	w.StringFieldIf("url", a.URL)
	w.EndObject()
	return Entry{Kind: kindAttachment, Key: attachmentKey(name), Body: w.Buf}, w.Err()
}

// detached collects the attachments of messages, by name and in order.
type detached struct {
	names  []string
	byName map[string]*attachment
}

func (d *detached) add(a *attachment) (name string) {
	name = a.name()
	if d.byName == nil {
		d.byName = map[string]*attachment{}
	}
	if d.byName[name] == nil {
		d.byName[name] = a
		d.names = append(d.names, name)
	}
	return name
}

// parts returns parts with references in place of content. It does not change its argument.
func (d *detached) parts(parts []dragoman.Part) []dragoman.Part {
	var out []dragoman.Part
	set := func(i int, p dragoman.Part) {
		if out == nil {
			out = slices.Clone(parts)
		}
		out[i] = p
	}
	for i, p := range parts {
		switch p := p.(type) {
		case *dragoman.Media:
			if p == nil {
				continue
			}
			if a := contentOf(p); a != nil {
				ref := *p
				ref.Base64, ref.Text, ref.URL, ref.Attachment = "", "", "", d.add(a)
				set(i, &ref)
			}
		case *dragoman.ToolResult:
			if p == nil {
				continue
			}
			if content := d.parts(p.Content); len(content) > 0 && !slices.Equal(content, p.Content) {
				ref := *p
				ref.Content = content
				set(i, &ref)
			}
		}
	}
	if out == nil {
		return parts
	}
	return out
}

// message returns a message with references in place of content, also in its native form.
func (d *detached) message(m dragoman.Message) dragoman.Message {
	if m.Native != nil && bytes.Contains(m.Native.Raw, []byte(rawPrefix)) {
		return m // its own text looks like a reference, so leave it unchanged
	}
	var own detached
	parts := own.parts(m.Parts)
	if len(own.names) == 0 {
		return m
	}
	m.Parts = parts
	for _, name := range own.names {
		d.add(own.byName[name])
	}
	if m.Native != nil {
		n := *m.Native
		n.Raw = bytes.Clone(n.Raw)
		for _, name := range own.names {
			n.Raw = bytes.ReplaceAll(n.Raw, []byte(own.byName[name].value()), []byte(rawPrefix+name))
		}
		m.Native = &n
	}
	return m
}

func (d *detached) messages(ms []dragoman.Message) []dragoman.Message {
	out := ms
	for i := range ms {
		before := len(d.names)
		m := d.message(ms[i])
		if len(d.names) == before && !hasReference(m.Parts) {
			continue
		}
		if &out[0] == &ms[0] {
			out = slices.Clone(ms)
		}
		out[i] = m
	}
	return out
}

// hasReference reports whether parts refer to attachments.
func hasReference(parts []dragoman.Part) bool {
	return slices.ContainsFunc(parts, func(p dragoman.Part) bool {
		switch p := p.(type) {
		case *dragoman.Media:
			return p != nil && p.Attachment != ""
		case *dragoman.ToolResult:
			return p != nil && hasReference(p.Content)
		default:
			return false
		}
	})
}

// entries returns the entries of attachments that the session does not have yet.
func (s *Session) entries(ctx context.Context, d *detached) ([]Entry, error) {
	var out []Entry
	for _, name := range d.names {
		if known, err := s.hasAttachment(ctx, name); err != nil || known {
			if err != nil {
				return nil, err
			}
			continue
		}
		e, err := d.byName[name].entry(name)
		if err != nil {
			return nil, fmt.Errorf("%w: an attachment: %w", ErrInvalid, err)
		}
		out = append(out, e)
	}
	return out, nil
}

func (s *Session) hasAttachment(ctx context.Context, name string) (bool, error) {
	s.linkMu.Lock()
	known := s.attached[name]
	s.linkMu.Unlock()
	if known {
		return true, nil
	}
	for _, err := range s.Entries(ctx, Query{Key: attachmentKey(name), Kinds: []string{kindAttachment}, Last: 1}) {
		if err == nil {
			s.knowAttachments(name)
		}
		return err == nil, err
	}
	return false, nil
}

// knowAttachments caches that the log has attachments.
func (s *Session) knowAttachments(names ...string) {
	if len(names) == 0 {
		return
	}
	s.linkMu.Lock()
	defer s.linkMu.Unlock()
	if s.attached == nil {
		s.attached = map[string]bool{}
	}
	for _, name := range names {
		s.attached[name] = true
	}
}

// writeWith writes entries after the attachments that they refer to, all or nothing.
func (s *Session) writeWith(ctx context.Context, d *detached, entries []Entry) error {
	first, err := s.entries(ctx, d)
	if err != nil {
		return err
	}
	if len(first) > 0 {
		entries = append(first, entries...)
	}
	if err := s.write(ctx, entries); err != nil {
		return err
	}
	s.knowAttachments(d.names...)
	return nil
}

// Attach stores the content of media in the session and returns a reference to it, for
// messages of this session. It returns content shorter than 1 KiB unchanged.
// [Session.Save] does the same with the media of all messages.
func (s *Session) Attach(ctx context.Context, m *dragoman.Media) (*dragoman.Media, error) {
	var d detached
	if m == nil {
		return nil, invalidf("the media is missing")
	}
	ref := d.parts([]dragoman.Part{m})[0].(*dragoman.Media)
	return ref, wrapIf("attaching to", s.ID(), s.writeWith(ctx, &d, nil))
}

// Detach stores the content of large media in the session and returns the messages with
// references to it, for [Session.Expand]. It does not change its argument. [Session.Save]
// does the same for the messages that it stores; Detach is for messages that are part of
// other data, such as the state of a run.
func (s *Session) Detach(ctx context.Context, messages []dragoman.Message) ([]dragoman.Message, error) {
	var d detached
	out := d.messages(messages)
	return out, wrapIf("attaching to", s.ID(), s.writeWith(ctx, &d, nil))
}

// Expand returns messages of the session with the content of their attachments in place
// of the references, as a request needs them. It does not change its argument.
// A reference that the session does not have is an error that wraps
// [dragoman.ErrAttachment] and names it.
//
// An agent that runs in the session calls Expand for every request.
func (s *Session) Expand(ctx context.Context, messages []dragoman.Message) ([]dragoman.Message, error) {
	out, err := s.expand(ctx, messages, nil)
	return out, wrapIf("reading attachments of", s.ID(), err)
}

// expand is Expand with additional attachments that are not stored yet.
func (s *Session) expand(ctx context.Context, messages []dragoman.Message, more *detached) ([]dragoman.Message, error) {
	if !slices.ContainsFunc(messages, func(m dragoman.Message) bool { return hasReference(m.Parts) }) {
		return messages, nil
	}
	x := expansion{ctx: ctx, s: s, found: map[string]*attachment{}}
	if more != nil {
		for _, name := range more.names {
			x.found[name] = more.byName[name]
		}
	}
	out := messages
	for i := range messages {
		m := messages[i]
		if !hasReference(m.Parts) {
			continue
		}
		var names []string
		parts, err := x.parts(m.Parts, &names)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		m.Parts = parts
		if m.Native != nil && bytes.Contains(m.Native.Raw, []byte(rawPrefix)) {
			n := *m.Native
			n.Raw = bytes.Clone(n.Raw)
			for _, name := range names {
				n.Raw = bytes.ReplaceAll(n.Raw, []byte(rawPrefix+name), []byte(x.found[name].value()))
			}
			m.Native = &n
		}
		if &out[0] == &messages[0] {
			out = slices.Clone(messages)
		}
		out[i] = m
	}
	return out, nil
}

// expansion reads attachments, each once.
type expansion struct {
	ctx   context.Context //nolint:containedctx // it lives for one call
	s     *Session
	found map[string]*attachment
}

func (x *expansion) parts(parts []dragoman.Part, names *[]string) ([]dragoman.Part, error) {
	out := slices.Clone(parts)
	for i, p := range out {
		switch p := p.(type) {
		case *dragoman.Media:
			if p == nil || p.Attachment == "" {
				continue
			}
			a, err := x.read(p.Attachment)
			if err != nil {
				return nil, err
			}
			*names = append(*names, p.Attachment)
			whole := *p
			whole.Base64, whole.Text, whole.URL, whole.Attachment = a.Base64, a.Text, a.URL, ""
			out[i] = &whole
		case *dragoman.ToolResult:
			if p == nil || !hasReference(p.Content) {
				continue
			}
			content, err := x.parts(p.Content, names)
			if err != nil {
				return nil, err
			}
			whole := *p
			whole.Content = content
			out[i] = &whole
		}
	}
	return out, nil
}

func (x *expansion) read(name string) (*attachment, error) {
	if a := x.found[name]; a != nil {
		return a, nil
	}
	err := fmt.Errorf("%w: %q is not in the session; attach the content again", dragoman.ErrAttachment, name)
	for e, failed := range x.s.Entries(x.ctx, Query{Key: attachmentKey(name), Kinds: []string{kindAttachment}, Last: 1}) {
		if failed != nil {
			return nil, failed
		}
		var a attachment
		if err = unmarshal(&e, &a, &a.V); err == nil && a.name() != name {
			err = unreadable(&e, errors.New("the content does not match the hash in its name"))
		}
		x.found[name] = &a
	}
	if err != nil {
		delete(x.found, name)
		return nil, err
	}
	x.s.knowAttachments(name)
	return x.found[name], nil
}
