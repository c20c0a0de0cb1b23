package dragoman

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// MarshalPart writes a part as stored JSON; its "type" is the part's kind.
func MarshalPart(p Part) ([]byte, error) {
	return storeSized("part", storedSize(p), func(out *storer) { storePart(&p, out) })
}

// storedSize is about what a part takes: a little more than most do.
func storedSize(p Part) int {
	const frame = 48
	if isNilPart(p) {
		return frame
	}
	switch p := p.(type) {
	case *Text:
		return frame + len(p.Text) + len(p.Text)/8
	case *Reasoning:
		return frame + len(p.Text) + len(p.Text)/8 + len(p.Encrypted) + len(p.Signature)
	case *Media:
		return 2*frame + len(p.Base64) + len(p.Text) + len(p.URL)
	case *ToolCall:
		return 2*frame + len(p.ID) + len(p.Name) + quotedSize(len(p.Arguments))
	case *ToolResult:
		size := 2*frame + len(p.CallID) + len(p.Name)
		for _, inner := range p.Content {
			size += storedSize(inner)
		}
		return size
	case *Data:
		return frame + quotedSize(len(p.JSON))
	case *Opaque:
		return 2*frame + quotedSize(len(p.JSON))
	default:
		return frame
	}
}

// UnmarshalPart reads a stored part.
func UnmarshalPart(data []byte) (Part, error) {
	var p Part
	if err := load(data, "part", &p, loadPart); err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errors.New("dragoman: stored part: it is null")
	}
	return p, nil
}

// isNil reports whether an interface holds nothing, or a nil pointer.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	rv := reflect.ValueOf(v)
	return rv.Kind() == reflect.Pointer && rv.IsNil()
}

func storePart(pp *Part, out *storer) {
	if isNil(*pp) {
		out.fail(errors.New("a part is nil"))
		out.w.Null()
		return
	}
	out.w.BeginObject()
	out.w.StringField("type", string((*pp).Kind()))
	switch p := (*pp).(type) {
	case *Text:
		out.str("text", p.Text)
		storeOpt(out, "cache", p.Cache, (*CacheHint).store)
		out.str("signature", p.Signature)
		storeOpt(out, "extra", p.Extra, (*Extra).store)
	case *Reasoning:
		out.str("id", p.ID)
		out.str("text", p.Text)
		storeList(out, "summary", p.Summary, storeString)
		out.str("signature", p.Signature)
		out.str("encrypted", p.Encrypted)
		out.flag("redacted", p.Redacted)
		out.str("field", p.Field)
		storeList(out, "details", p.Details, storeNative)
		out.str("status", string(p.Status))
		storeOpt(out, "origin", p.Origin, (*Origin).store)
		storeOpt(out, "extra", p.Extra, (*Extra).store)
	case *Media:
		out.str("media", string(p.Media))
		out.str("mime", p.MIME)
		out.str("base64", p.Base64)
		out.str("text", p.Text)
		out.str("url", p.URL)
		out.str("file_id", p.FileID)
		out.str("attachment", p.Attachment)
		out.str("name", p.Name)
		out.str("title", p.Title)
		out.str("detail", p.Detail)
		storeOpt(out, "cache", p.Cache, (*CacheHint).store)
		storeOpt(out, "extra", p.Extra, (*Extra).store)
	case *ToolCall:
		out.str("id", p.ID)
		out.flag("synthetic", p.Synthetic)
		out.str("item_id", p.ItemID)
		out.str("name", p.Name)
		out.str("namespace", p.Namespace)
		out.str("payload", string(p.Payload))
		out.str("arguments", p.Arguments)
		out.str("payload_format", string(p.PayloadFormat))
		out.bytes("payload_metadata", p.PayloadMetadata)
		storeOpt(out, "problem", p.Problem, (*CallProblem).store)
		out.flag("hosted", p.Hosted)
		out.str("status", string(p.Status))
		out.flag("async", p.Async)
		out.bytes("caller", p.Caller)
		out.str("signature", p.Signature)
		storeOpt(out, "cache", p.Cache, (*CacheHint).store)
		storeOpt(out, "extra", p.Extra, (*Extra).store)
	case *ToolResult:
		out.str("call_id", p.CallID)
		out.str("name", p.Name)
		out.str("namespace", p.Namespace)
		out.str("payload", string(p.Payload))
		storeList(out, "content", p.Content, storePart)
		out.str("outcome", string(p.Outcome))
		out.str("display", p.Display)
		storeOpt(out, "envelope", p.Envelope, (*Native).store)
		out.flag("synthetic", p.Synthetic)
		out.str("item_id", p.ItemID)
		out.str("status", string(p.Status))
		out.bytes("caller", p.Caller)
		storeOpt(out, "cache", p.Cache, (*CacheHint).store)
		storeOpt(out, "extra", p.Extra, (*Extra).store)
	case *Refusal:
		out.str("text", p.Text)
		storeOpt(out, "extra", p.Extra, (*Extra).store)
	case *Data:
		out.bytes("json", p.JSON)
	case *Opaque:
		out.str("dialect", string(p.Dialect))
		out.str("native_type", p.Type)
		out.bytes("json", p.JSON)
		out.str("call_id", p.CallID)
		out.flag("hosted", p.Hosted)
	default:
		out.fail(fmt.Errorf("a %T has no stored form", p))
	}
	out.w.EndObject()
}

// anyPart has room for the members of every part: "type" may stand anywhere
// (databases reorder members), and reading twice would cost the square of the
// depth of nested results. Hence one rule for whoever adds a member: one name
// has one JSON type in all parts.
type anyPart struct {
	kind            PartKind
	text            string
	summary         []string
	signature       string
	encrypted       string
	redacted        bool
	id              string
	field           string
	details         []json.RawMessage
	status          Status
	origin          *Origin
	media           MediaKind
	mime            string
	base64          string
	url             string
	fileID          string
	attachment      string
	name            string
	title           string
	detail          string
	synthetic       bool
	itemID          string
	namespace       string
	payload         PayloadKind
	arguments       string
	problem         *CallProblem
	hosted          bool
	async           bool
	caller          json.RawMessage
	payloadFormat   Format
	payloadMetadata json.RawMessage
	callID          string
	content         []Part
	outcome         Outcome
	display         string
	envelope        *Native
	json            json.RawMessage
	dialect         Dialect
	nativeType      string
	cache           *CacheHint
	extra           *Extra
}

func loadPart(r *jsonwire.Reader) Part {
	if r.Kind() == 'n' {
		r.Skip()
		r.Fail(errors.New("a part is null"))
		return nil
	}
	a := loadAnyPart(r)
	if r.Err() != nil {
		return nil
	}
	switch a.kind {
	case KindText:
		return &Text{Text: a.text, Cache: a.cache, Signature: a.signature, Extra: a.extra}
	case KindReasoning:
		return &Reasoning{
			Text: a.text, Summary: a.summary, Signature: a.signature, Encrypted: a.encrypted, Redacted: a.redacted,
			ID: a.id, Field: a.field, Details: a.details, Status: a.status, Origin: a.origin, Extra: a.extra,
		}
	case KindMedia:
		return &Media{
			Media: a.media, MIME: a.mime, Base64: a.base64, Text: a.text, URL: a.url, FileID: a.fileID, Attachment: a.attachment,
			Name: a.name, Title: a.title, Detail: a.detail, Cache: a.cache, Extra: a.extra,
		}
	case KindToolCall:
		return &ToolCall{
			ID: a.id, Synthetic: a.synthetic, ItemID: a.itemID, Name: a.name, Namespace: a.namespace,
			Payload: a.payload, Arguments: a.arguments, PayloadFormat: a.payloadFormat, PayloadMetadata: a.payloadMetadata, Problem: a.problem, Hosted: a.hosted, Status: a.status,
			Async: a.async, Caller: a.caller, Signature: a.signature, Cache: a.cache, Extra: a.extra,
		}
	case KindToolResult:
		return &ToolResult{
			CallID: a.callID, Name: a.name, Namespace: a.namespace, Payload: a.payload, Content: a.content,
			Outcome: a.outcome, Display: a.display, Envelope: a.envelope, Synthetic: a.synthetic, ItemID: a.itemID,
			Status: a.status, Caller: a.caller, Cache: a.cache, Extra: a.extra,
		}
	case KindRefusal:
		return &Refusal{Text: a.text, Extra: a.extra}
	case KindData:
		return &Data{JSON: a.json}
	case KindOpaque:
		return &Opaque{Dialect: a.dialect, Type: a.nativeType, JSON: a.json, CallID: a.callID, Hosted: a.hosted}
	case "":
		r.Fail(errors.New(`a part has no "type"`))
		return nil
	default:
		r.Fail(fmt.Errorf("a part has the unknown type %.80q", string(a.kind)))
		return nil
	}
}

func loadAnyPart(r *jsonwire.Reader) (a anyPart) {
	for key := range r.Object() {
		switch string(key) {
		case "type":
			a.kind = loadWord[PartKind](r)
		case "text":
			a.text = r.String()
		case "summary":
			a.summary = loadList(r, loadWord[string])
		case "signature":
			a.signature = r.String()
		case "encrypted":
			a.encrypted = r.String()
		case "redacted":
			a.redacted = r.Bool()
		case "id":
			a.id = r.String()
		case "field":
			a.field = r.String()
		case "details":
			a.details = loadList(r, loadNative[json.RawMessage])
		case "status":
			a.status = loadWord[Status](r)
		case "origin":
			a.origin = loadOpt(r, loadOrigin)
		case "media":
			a.media = loadWord[MediaKind](r)
		case "mime":
			a.mime = r.String()
		case "base64":
			a.base64 = r.String()
		case "url":
			a.url = r.String()
		case "file_id":
			a.fileID = r.String()
		case "attachment":
			a.attachment = r.String()
		case "name":
			a.name = r.String()
		case "title":
			a.title = r.String()
		case "detail":
			a.detail = r.String()
		case "synthetic":
			a.synthetic = r.Bool()
		case "item_id":
			a.itemID = r.String()
		case "namespace":
			a.namespace = r.String()
		case "payload":
			a.payload = loadWord[PayloadKind](r)
		case "arguments":
			a.arguments = r.String()
		case "problem":
			a.problem = loadOpt(r, loadCallProblem)
		case "hosted":
			a.hosted = r.Bool()
		case "async":
			a.async = r.Bool()
		case "payload_format":
			a.payloadFormat = loadWord[Format](r)
		case "payload_metadata":
			a.payloadMetadata = loadNative[json.RawMessage](r)
		case "caller":
			a.caller = loadNative[json.RawMessage](r)
		case "call_id":
			a.callID = r.String()
		case "content":
			a.content = loadList(r, loadPart)
		case "outcome":
			a.outcome = loadWord[Outcome](r)
		case "display":
			a.display = r.String()
		case "envelope":
			a.envelope = loadOpt(r, loadNativeObject)
		case "json":
			a.json = loadNative[json.RawMessage](r)
		case "dialect":
			a.dialect = loadWord[Dialect](r)
		case "native_type":
			a.nativeType = r.String()
		case "cache":
			a.cache = loadOpt(r, loadCacheHint)
		case "extra":
			a.extra = loadOpt(r, loadExtra)
		default:
			r.Skip()
		}
	}
	return a
}

// loadPartInto reads a stored part of one known kind.
func loadPartInto[T any, P interface {
	*T
	Part
}](data []byte, dst P) error {
	return load(data, string(dst.Kind()), (*T)(dst), func(r *jsonwire.Reader) (v T) {
		switch p := loadPart(r).(type) {
		case P:
			v = *p
		case nil:
		default:
			r.Fail(fmt.Errorf("it is of type %q, want %q", p.Kind(), dst.Kind()))
		}
		return v
	})
}

// MarshalJSON writes the part as [MarshalPart] does, UnmarshalJSON reads it.
func (p Text) MarshalJSON() ([]byte, error)        { return MarshalPart(&p) }
func (p *Text) UnmarshalJSON(b []byte) error       { return loadPartInto(b, p) } // UnmarshalJSON reads a stored part.
func (p Reasoning) MarshalJSON() ([]byte, error)   { return MarshalPart(&p) }    // MarshalJSON is [MarshalPart].
func (p *Reasoning) UnmarshalJSON(b []byte) error  { return loadPartInto(b, p) } // UnmarshalJSON reads a stored part.
func (p Media) MarshalJSON() ([]byte, error)       { return MarshalPart(&p) }    // MarshalJSON is [MarshalPart].
func (p *Media) UnmarshalJSON(b []byte) error      { return loadPartInto(b, p) } // UnmarshalJSON reads a stored part.
func (c ToolCall) MarshalJSON() ([]byte, error)    { return MarshalPart(&c) }    // MarshalJSON is [MarshalPart].
func (c *ToolCall) UnmarshalJSON(b []byte) error   { return loadPartInto(b, c) } // UnmarshalJSON reads a stored part.
func (r ToolResult) MarshalJSON() ([]byte, error)  { return MarshalPart(&r) }    // MarshalJSON is [MarshalPart].
func (r *ToolResult) UnmarshalJSON(b []byte) error { return loadPartInto(b, r) } // UnmarshalJSON reads a stored part.
func (p Refusal) MarshalJSON() ([]byte, error)     { return MarshalPart(&p) }    // MarshalJSON is [MarshalPart].
func (p *Refusal) UnmarshalJSON(b []byte) error    { return loadPartInto(b, p) } // UnmarshalJSON reads a stored part.
func (p Data) MarshalJSON() ([]byte, error)        { return MarshalPart(&p) }    // MarshalJSON is [MarshalPart].
func (p *Data) UnmarshalJSON(b []byte) error       { return loadPartInto(b, p) } // UnmarshalJSON reads a stored part.
func (p Opaque) MarshalJSON() ([]byte, error)      { return MarshalPart(&p) }    // MarshalJSON is [MarshalPart].
func (p *Opaque) UnmarshalJSON(b []byte) error     { return loadPartInto(b, p) } // UnmarshalJSON reads a stored part.

// MarshalJSON writes the problem.
func (p CallProblem) MarshalJSON() ([]byte, error) { return store("call problem", p.store) }

// UnmarshalJSON reads a stored problem.
func (p *CallProblem) UnmarshalJSON(b []byte) error {
	return load(b, "call problem", p, loadCallProblem)
}

func (p *CallProblem) store(out *storer) {
	out.w.BeginObject()
	out.str("code", string(p.Code))
	out.str("message", p.Message)
	out.num("offset", p.Offset)
	out.w.EndObject()
}

func loadCallProblem(r *jsonwire.Reader) (p CallProblem) {
	for key := range r.Object() {
		switch string(key) {
		case "code":
			p.Code = loadWord[ProblemCode](r)
		case "message":
			p.Message = r.String()
		case "offset":
			p.Offset = r.Int()
		default:
			r.Skip()
		}
	}
	return p
}
