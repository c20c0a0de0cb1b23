package bedrock

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// EncodeRequest implements [dialect.Codec]. The URL, not the body, has the
// model and selects streaming. A request of this dialect that was not changed
// is written byte for byte; so is every unchanged tool and message, and every
// unchanged block of merged messages.
func (c Codec) EncodeRequest(req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	streams := false
	if req != nil && (req.Stream || req.StreamUsage) { // settings of the URL do not change the body
		body := *req
		streams = req.Stream
		body.Stream, body.StreamUsage = false, false
		req = &body
	}
	enc, err := wirekit.EncodeRequest(req, c.Limits(), toolCodecs, messagesAt, o, func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error) {
		e := requestEncoder{RequestEncoder: blockwire.NewRequestEncoder(blockwire.NewConversation(format, reg, o, rep), req)}
		e.takeEffort()
		e.inURL(streams)
		return &e.W, e.encode()
	})
	if err != nil || req.Model == "" {
		return enc, err
	}
	// If a client also names the model in the body, both names must agree.
	if extra.Has(req.Extra, name, "") {
		if out, bad := jsonwire.ReplaceString(enc.Body, req.Model, []string{"modelId"}, []string{"model"}); bad == nil {
			enc.Body = out
		}
	}
	return enc, nil
}

// inURL reports the settings that are in the URL and not in the body.
func (e *requestEncoder) inURL(streams bool) {
	_, id := extra.Get(e.Req.Extra, name, "/modelId")
	_, model := extra.Get(e.Req.Extra, name, "/model")
	if e.Req.Model != "" && !id && !model {
		e.Rep.Add(dragoman.Moved, dragoman.Info, "/model", "the model is in the URL, not in the body")
	}
	if streams {
		e.Rep.Add(dragoman.Moved, dragoman.Info, "/stream", "streaming is selected in the URL, not in the body")
	}
}

type requestEncoder struct {
	blockwire.RequestEncoder
	// effort is set for a model that has its own field for effort.
	effort modelEffort
}

func (e *requestEncoder) encode() error {
	e.arrange(e.Req)
	var err error
	if e.Toolbox, err = e.allowedTools(); err != nil {
		return err
	}
	e.Cache(keyCache, e.endHint(e.Req.Cache))
	return blockwire.EncodeSettings(&e.RequestEncoder, settings, e)
}

// modelFields writes the fields that are passed to the model: Converse has no
// field for reasoning.
func (e *requestEncoder) modelFields() {
	const member, at = "additionalModelRequestFields", "/additionalModelRequestFields"
	typ := e.ThinkingType()
	if typ == "" && e.effort.field == "" && !extra.Has(e.Req.Extra, name, at) {
		return
	}
	w := &e.W
	e.W.Key(member)
	w.BeginObject()
	if typ != "" {
		w.Key("thinking")
		e.Thinking(typ, at+"/thinking")
	}
	e.effort.write(w)
	extra.WriteBut(w, e.Req.Extra, name, at, func(f dragoman.Field) bool {
		return f.Path == at+"/thinking" && typ != "" || e.effort.field != "" && f.Path == at+"/"+e.effort.field
	})
	w.EndObject()
}

// textFormat writes the output format. The schema is written as a string.
func (e *requestEncoder) textFormat() {
	w, f, schema := &e.W, e.Req.Output, e.Schema()
	if schema == nil {
		return
	}
	w.Key("textFormat")
	w.BeginObject()
	w.StringField("type", "json_schema")
	w.Key("structure")
	w.BeginObject()
	w.Key("jsonSchema")
	w.BeginObject()
	w.StringField("schema", string(schema))
	if f.Name != "" || f.Dialect != name {
		w.StringField("name", wirekit.OutputName(f.Name, e.Rep))
	}
	w.StringFieldIf("description", f.Description)
	extra.Write(w, f.Extra, name, "/structure/jsonSchema")
	w.EndObject()
	extra.Write(w, f.Extra, name, "/structure")
	w.EndObject()
	extra.Write(w, f.Extra, name, "")
	w.EndObject()
}

// metadata writes the metadata that the API accepts.
func (e *requestEncoder) metadata() {
	const most = 16
	kept := make([]dragoman.KeyValue, 0, len(e.Req.Metadata))
	for _, kv := range e.Req.Metadata {
		switch {
		case kv.Key == "" || !plainMetadata(kv.Key) || !plainMetadata(kv.Value):
			e.Rep.Addf(dragoman.Dropped, dragoman.Info, "/metadata", "%.40q: the API accepts up to 256 plain characters", kv.Key)
		case len(kept) == most:
			e.Rep.Addf(dragoman.Dropped, dragoman.Info, "/metadata", "%.40q: the API accepts %d entries", kv.Key, most)
		default:
			kept = append(kept, kv)
		}
	}
	if len(kept) == 0 {
		return
	}
	e.W.Key("requestMetadata")
	wirekit.WriteMetadata(&e.W, kept, e.Rep)
}

// plainMetadata reports whether s is a valid metadata key or value.
func plainMetadata(s string) bool {
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune(" \t\n:_@$#=/+,-.", c):
		default:
			return false
		}
	}
	return len(s) <= 256
}

// tier writes the service tier.
func (e *requestEncoder) tier() {
	tier := e.Req.ServiceTier
	switch {
	case tier == "":
		return
	case knownTier(tier):
	case tier == "standard_only": // Anthropic's name
		tier = "default"
		e.Rep.Add(dragoman.Lowered, dragoman.Info, "/service_tier", `"standard_only" written as "default"`)
	default:
		e.Rep.Addf(dragoman.Dropped, dragoman.Warn, "/service_tier", "the API has no service tier %.40q", tier)
		return
	}
	e.W.Key("serviceTier")
	e.W.BeginObject()
	e.W.StringField("type", tier)
	e.W.EndObject()
}
