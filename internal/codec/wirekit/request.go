package wirekit

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// EncodeRequest encodes a request for every dialect. It refuses a request that no wire can
// carry and one whose body would have no message. A request that came from this dialect and
// did not change is written byte for byte, except for the model name. write encodes every
// other request; its body is used only if it is complete.
func EncodeRequest(
	req *dragoman.Request, limits targets.Limits, tools []toolwire.Codec, c Conversation, o dialect.EncodeOptions,
	write func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error),
) (dialect.Encoded, error) {
	enc, err := encodeRequest(req, limits, tools, o, write)
	if err != nil {
		return enc, err
	}
	if err := checkMessages(limits.Dialect, c, req, enc.Body); err != nil {
		return dialect.Encoded{Report: enc.Report}, err
	}
	return enc, nil
}

// EncodeNormalized encodes a request that history.Normalize returned for the limits of the
// codec. Normalize checked it, and the encoder does not check it again. o has the registry
// of the request, or the codecs to compose it.
func EncodeNormalized(c dialect.Codec, req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	if o.Registry == nil {
		o.Registry = newRegistry(req, c.Limits(), nil, o)
	}
	o.Registry.View().SetChecked(req)
	return c.EncodeRequest(req, o)
}

func encodeRequest(
	req *dragoman.Request, limits targets.Limits, tools []toolwire.Codec, o dialect.EncodeOptions,
	write func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error),
) (dialect.Encoded, error) {
	checked := o.Registry != nil && o.Registry.View().Checked(req)
	if !checked {
		if err := req.Validate(); err != nil {
			return dialect.Encoded{}, err
		}
	}
	if err := CheckEncode(limits.Dialect, o); err != nil {
		return dialect.Encoded{}, err
	}
	if !checked {
		if err := CheckReferences(req, limits); err != nil {
			return dialect.Encoded{}, fmt.Errorf("%s: %w", limits.Dialect, err)
		}
	}
	reg := EncodeRegistry(req, limits, tools, o)
	if body, ok := ReplayRequest(req, limits, o); ok && (req.Model == "" || limits.ModelInURL || namesModel(body)) {
		blockUnrequestedCalls(req, reg)
		return dialect.Encoded{Body: body, Registry: reg}, nil
	}
	rep := new(dragoman.Report)
	w, err := write(o, reg, rep)
	blockUnrequestedCalls(req, reg)
	if err == nil && o.Target.Caps != (targets.Capabilities{}) {
		if body, ok := replayUnchanged(req, limits, tools, o, w.Buf, rep, write); ok {
			return dialect.Encoded{Body: body, Registry: reg}, nil
		}
	}
	unreportModel(rep, req, limits)
	return Encoded(limits.Dialect, w, rep, reg, err)
}

// replayUnchanged returns the native body of a request that the capabilities of its
// target do not change: written without them, it has the same body and losses.
func replayUnchanged(
	req *dragoman.Request, limits targets.Limits, tools []toolwire.Codec, o dialect.EncodeOptions, written []byte, lost *dragoman.Report,
	write func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error),
) ([]byte, bool) {
	o.Target.Caps, o.Registry = targets.Capabilities{}, nil
	body, ok := ReplayRequest(req, limits, o)
	if !ok || req.Model != "" && !limits.ModelInURL && !namesModel(body) {
		return nil, false
	}
	rep := new(dragoman.Report)
	w, err := write(o, EncodeRegistry(req, limits, tools, o), rep)
	return body, err == nil && bytes.Equal(w.Buf, written) && slices.Equal(rep.Losses, lost.Losses)
}

// unreportModel removes the reported loss of a model name in the body, for a dialect
// that has it in the URL. The decoder reads that name as the model of the request
// (decision 32).
func unreportModel(rep *dragoman.Report, req *dragoman.Request, limits targets.Limits) {
	if req.Extra == nil || req.Extra.Dialect == limits.Dialect || req.Model == "" {
		return
	}
	for _, f := range req.Extra.Fields {
		if (f.Path == "/modelId" || f.Path == "/model") && jsonwire.NewReader(f.Value).String() == req.Model {
			rep.Losses = slices.DeleteFunc(rep.Losses, func(l dragoman.Loss) bool { return l.Path == f.Path && l.Kind == dragoman.Dropped })
		}
	}
}

// blockUnrequestedCalls makes the registry block every call in the response to a request that
// offers no tools or forbids calls. Some models call tools anyway (quirk B37).
func blockUnrequestedCalls(req *dragoman.Request, reg *interop.Registry) {
	none := req.ToolChoice != nil && req.ToolChoice.Mode == dragoman.ChoiceNone
	if none || len(req.Tools) == 0 && !hasOtherTools(req) {
		reg.AllowOnly([]dragoman.ToolRef{})
	}
}

// hasOtherTools reports whether a request may have tools outside of its list: in a
// prompt, cache or conversation that the server stores, in fields of one API, or in
// items that only one provider reads.
func hasOtherTools(req *dragoman.Request) bool {
	if req.PreviousResponseID != "" || strings.Contains(req.Model, ":prompt/") {
		return true
	}
	if req.Extra != nil && slices.ContainsFunc(req.Extra.Fields, func(f dragoman.Field) bool {
		switch f.Path {
		case "/prompt", "/conversation", "/cachedContent", "/cached_content":
			return true
		default:
			return strings.Contains(strings.ToLower(f.Path), "tool")
		}
	}) {
		return true
	}
	return slices.ContainsFunc(req.Messages, func(m dragoman.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool {
			o, opaque := p.(*dragoman.Opaque)
			return opaque && strings.Contains(strings.ToLower(o.Type), "tool")
		})
	})
}

// CheckTools refuses a request with tools for a model that cannot call tools. pkg is
// the prefix of the error.
func CheckTools(pkg string, req *dragoman.Request, caps targets.Capabilities) error {
	if len(req.Tools) > 0 && caps.NoTools {
		return &FieldError{By: pkg, Field: FieldTools, Detail: NoTools(req.Model), Err: dragoman.ErrUnsupported}
	}
	return nil
}

// KnownChoice reports whether m is a known tool choice mode. An unknown mode must not
// become auto.
func KnownChoice(m string) bool {
	switch m {
	case dragoman.ChoiceAuto, dragoman.ChoiceNone, dragoman.ChoiceRequired, dragoman.ChoiceTool, codes.ChoiceOpaque:
		return true
	default:
		return false
	}
}

// RefusesForced reports whether the tool choice of a request forces a call that the
// target would refuse, as some targets do while they think (quirk E4).
func RefusesForced(req *dragoman.Request, caps targets.Capabilities) bool {
	c := req.ToolChoice
	if c == nil || c.Mode != dragoman.ChoiceRequired && c.Mode != dragoman.ChoiceTool {
		return false
	}
	switch caps.ForcedChoice {
	case codes.ForcedNever:
		return true
	case codes.ForcedWithoutThinking:
		return Reasons(req, &caps)
	default:
		return false
	}
}

// RefusesSampling reports whether the target accepts no sampling parameters. If so, it
// reports that the parameter key is dropped.
func RefusesSampling(caps targets.Capabilities, key string, rep *dragoman.Report) bool {
	return caps.NoSampling && refusesSampler(&caps, "/sampling/"+key, rep)
}

func refusesSampler(caps *targets.Capabilities, path string, rep *dragoman.Report) bool {
	if caps.NoSampling {
		rep.Add(dragoman.Dropped, dragoman.Warn, path, "the model accepts no sampling parameters")
	}
	return caps.NoSampling
}

// FitSampling returns the temperature and top_p to write; nil means that the parameter is
// left out. It limits the temperature to 1, the maximum of block APIs. If the target
// accepts only one of the two, it first leaves out one that is 1, the default of both.
func FitSampling(caps targets.Capabilities, temperature, topP *dragoman.Number, rep *dragoman.Report) (t, p *dragoman.Number) {
	if t = temperature; t != nil && Float(*t) > 1 {
		rep.Addf(dragoman.Lowered, dragoman.Warn, "/sampling/temperature", "%s written as 1, the maximum of the API", *t)
		t = new(dragoman.Number("1"))
	}
	if !caps.OneSampler || t == nil || topP == nil {
		return t, topP
	}
	const detail = "the model accepts temperature or top_p, not both"
	switch {
	case Float(*topP) == 1:
		rep.Add(dragoman.Lowered, dragoman.Info, "/sampling/top_p", detail)
		return t, nil
	case Float(*t) == 1:
		rep.Add(dragoman.Lowered, dragoman.Info, "/sampling/temperature", detail)
		return nil, topP
	default:
		rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/top_p", detail)
		return t, nil
	}
}

// Float returns the value of a number, or NaN if it is not valid.
func Float(n dragoman.Number) float64 {
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return math.NaN()
	}
	return f
}

// EffortOf returns the effort nearest to a thinking budget, for wire formats without
// budgets.
func EffortOf(budget int64) string {
	switch {
	case budget <= 2048:
		return "low"
	case budget <= 16384:
		return "medium"
	default:
		return "high"
	}
}
