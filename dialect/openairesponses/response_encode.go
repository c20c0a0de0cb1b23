package openairesponses

import (
	"cmp"
	"slices"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// EncodeResponse implements [dialect.Codec]. The response object has every field that the
// official clients require. Unknown values are null or a default, because the codec does not see
// the request and cannot echo it.
func (c Codec) EncodeResponse(resp *dragoman.Response, o dialect.EncodeOptions) (dialect.Encoded, error) {
	if err := resp.Validate(); err != nil {
		return dialect.Encoded{}, err
	}
	if err := wirekit.CheckEncode(name, o); err != nil {
		return dialect.Encoded{}, err
	}
	reg := wirekit.ResponseRegistry(resp, c.Limits(), toolCodecs, o)
	body, replays := wirekit.ReplayResponse(resp, name, o)
	if replays && !wirekit.MustRebuild(resp, wirekit.BlockedReason) {
		return dialect.Encoded{Body: body, Registry: reg}, nil
	}
	e := outputEncoder{reg: reg, o: o, rep: new(dragoman.Report), seed: cmp.Or(o.Seed, resp.ID)}
	if replays {
		e.rep.Add(dragoman.Lowered, dragoman.Info, "", "a call must not run; the response is re-encoded instead of passed through")
	}
	id := e.responseID(resp)
	items := e.items(resp)
	if len(resp.Alternatives) > 0 {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/alternatives", "Responses returns one candidate; %d more are dropped", len(resp.Alternatives))
	}
	w := jsonwire.Writer{Buf: make([]byte, 0, wirekit.ResponseSize(resp))}
	e.writeResponse(&w, resp, id, items, resp.ToolCalls())
	return wirekit.Encoded(name, &w, e.rep, reg, nil)
}

func (e *outputEncoder) responseID(resp *dragoman.Response) string {
	if e.o.ResponseID != "" {
		return e.o.ResponseID
	}
	if resp.Origin != nil && resp.Origin.Dialect == name && resp.ID != "" {
		return resp.ID
	}
	return e.generateID("resp_")
}

// items converts the output to items. An unchanged message from this dialect keeps its bytes.
func (e *outputEncoder) items(resp *dragoman.Response) []*outputItem {
	var items []*outputItem
	replayed := make(map[int]bool)
	for i := range resp.Output {
		m := &resp.Output[i]
		at := extra.Elem("/output", i)
		if !e.o.Rebuild && m.Native.Current(name, m.Fingerprint) && wirekit.EffectiveStop(resp.Stop, m.ToolCalls(), wirekit.BlockedReason).Reason == resp.Stop.Reason {
			items = append(items, &outputItem{json: m.Native.Raw})
			replayed[i] = true
			continue
		}
		var open *outputItem // the current message item
		for j, p := range m.Parts {
			pat := at.Elem("parts", j)
			if isContent(m, p) {
				if open == nil {
					if open = e.open(&dragoman.Text{}, m, at); i == len(resp.Output)-1 && cut(resp.Stop) && j == len(m.Parts)-1 {
						open.status = "incomplete"
					}
					if itemStatus(m) != "completed" {
						open.status = "incomplete"
					}
					items = append(items, open)
				}
				if media, ok := p.(*dragoman.Media); ok {
					e.rep.Addf(dragoman.Dropped, dragoman.Serious, pat.String(), "an output cannot contain %s", media.Media)
					continue
				}
				open.parts, open.places = append(open.parts, p), append(open.places, pat)
				continue
			}
			open = nil
			if it := e.open(p, m, pat); it != nil {
				if c, ok := p.(*dragoman.ToolCall); ok {
					it.status = callStatus(c)
				}
				items = append(items, it)
			}
		}
	}
	kept := items[:0]
	written := make(map[*dragoman.Message]bool, len(resp.Output))
	for _, it := range items {
		if it.json == nil && it.kind == messageItem && len(it.parts) == 0 {
			continue // all content was dropped and reported
		}
		written[it.header] = written[it.header] || it.kind == messageItem
		e.close(it)
		kept = append(kept, it)
	}
	for i := range resp.Output {
		if m := &resp.Output[i]; !replayed[i] {
			e.reportMessageLosses(m, written[m], extra.Elem("/output", i))
		}
	}
	return kept
}

// cut reports whether a stop truncated the last content of the model.
func cut(s dragoman.Stop) bool {
	return s.Reason == dragoman.StopLength || s.Reason == dragoman.StopContentFilter
}

// writeResponse writes a response object with the given items. calls are the calls of the
// response.
func (e *outputEncoder) writeResponse(w *jsonwire.Writer, resp *dragoman.Response, id string, items []*outputItem, calls []*dragoman.ToolCall) {
	status, reason, exact := e.ending(resp, calls)
	if !exact {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/stop", "stop reason %s is written as %s", resp.Stop.Reason, cmp.Or(reason, status))
	}
	e.reportGenerated(resp)
	w.BeginObject()
	e.writeHead(w, resp, id, status)
	w.Key("error")
	switch {
	case resp.Error != nil:
		e.writeFailure(w, resp.Error)
	case status == "failed":
		words, extras := wirekit.Ended(resp.Stop.Reason, resp.Extra)
		e.writeFailure(w, &dragoman.APIError{Class: dragoman.ErrorServer, Message: words})
		rest := *resp
		rest.Extra, resp = extras, &rest
	default:
		w.Null()
	}
	w.Key("incomplete_details")
	details := ownDetails(resp, reason)
	if status != "incomplete" || details == nil {
		wirekit.ReportDetails(e.rep, resp.Stop, "")
	}
	switch {
	case status != "incomplete":
		w.Null()
	case details != nil:
		w.Raw(details)
	case reason == "":
		w.Null()
	default:
		w.BeginObject()
		w.StringField("reason", reason)
		w.EndObject()
	}
	w.Key("output")
	w.BeginArray()
	size := 0
	for _, it := range items {
		size += len(it.json) + 1
	}
	w.Buf = slices.Grow(w.Buf, size)
	for _, it := range items {
		w.Raw(it.json)
	}
	w.EndArray()
	w.Key("usage")
	writeUsage(w, resp.Usage, e.rep)
	e.writeEcho(w, resp, status)
	w.EndObject()
}

// reportGenerated reports the values of a response that do not come from its provider.
func (e *outputEncoder) reportGenerated(resp *dragoman.Response) {
	if e.generated > 0 {
		e.rep.Add(dragoman.Synthesized, dragoman.Info, "/id", "the response and its items get ids in the format of this API; their own ids are dropped")
	}
	if resp.Created.IsZero() && !hasOwnField(resp.Extra, "/created_at") {
		wirekit.ReportNoTime(e.rep)
	}
}

// writeHead writes the fields that are known when a response starts.
func (e *outputEncoder) writeHead(w *jsonwire.Writer, resp *dragoman.Response, id, status string) {
	w.StringField("id", id)
	if !hasOwnField(resp.Extra, "/object") {
		w.StringField("object", "response")
	}
	if !hasOwnField(resp.Extra, "/created_at") {
		w.IntField("created_at", seconds(resp.Created))
	}
	w.StringField("status", status)
	w.StringField("model", cmp.Or(e.o.Model, resp.Model))
}

// echoed are the fields in which a server repeats the request and which official clients require,
// each with the value for an unknown one.
var echoed = [...]struct{ key, unknown string }{
	{"instructions", "null"},
	{"metadata", "{}"},
	{"parallel_tool_calls", "true"},
	{"temperature", "1"}, // the default of the API; Open Responses requires a number
	{"tool_choice", `"auto"`},
	{"tools", "[]"},
	{"top_p", "1"},
	{"access_programs", "null"},
	// Also required by Open Responses. store is false unless the upstream says otherwise: a
	// client would continue with a response id that no server knows.
	{"previous_response_id", "null"},
	{"truncation", `"disabled"`},
	{"text", `{"format":{"type":"text"}}`},
	{"presence_penalty", "0"},
	{"frequency_penalty", "0"},
	{"top_logprobs", "0"},
	{"reasoning", "null"},
	{"max_output_tokens", "null"},
	{"max_tool_calls", "null"},
	{"store", "false"},
	{"background", "false"},
	{"safety_identifier", "null"},
	{"prompt_cache_key", "null"},
}

// neverNull are the echoed fields that Open Responses requires with a value.
var neverNull = []string{"temperature", "top_p"}

// writeEcho writes the echoed request fields and the unknown fields.
func (e *outputEncoder) writeEcho(w *jsonwire.Writer, resp *dragoman.Response, status string) {
	skip := []string{"id", "model", "status", "service_tier"}
	for _, m := range echoed {
		value, ok := extra.Get(resp.Extra, name, "/"+m.key)
		if ok && string(value) == "null" && slices.Contains(neverNull, m.key) {
			ok, skip = false, append(skip, m.key)
		}
		if !ok {
			w.RawField(m.key, []byte(m.unknown))
		}
	}
	e.writeCompletedAt(w, resp, status, &skip)
	e.writeTier(w, resp)
	extra.Write(w, withoutFields(resp.Extra, skip...), name, "")
	extra.ReportEcho(e.rep, resp.Extra, name, extra.At(""))
}

// writeCompletedAt writes the completion time of a completed response, and null for any other
// status. If the server reports no such time, the creation time is used.
func (e *outputEncoder) writeCompletedAt(w *jsonwire.Writer, resp *dragoman.Response, status string, skip *[]string) {
	*skip = append(*skip, "completed_at")
	at, known := extra.Get(resp.Extra, name, "/completed_at")
	created, own := extra.Get(resp.Extra, name, "/created_at")
	switch {
	case status != "completed":
		w.NullField("completed_at")
	case known && string(at) != "null":
		w.RawField("completed_at", at)
	case own:
		w.RawField("completed_at", created)
	default:
		w.IntField("completed_at", seconds(resp.Created))
	}
}

// writeTier writes the service tier, which Open Responses requires. An unknown tier is written as
// the default one.
func (e *outputEncoder) writeTier(w *jsonwire.Writer, resp *dragoman.Response) {
	tiers := wirekit.OpenAITiers(name)
	tier := tiers.ResponseTier(resp.ServiceTier, resp.Origin, e.rep)
	if raw, ok := extra.Get(resp.Extra, name, "/service_tier"); tier == "" && ok && len(raw) > 0 && raw[0] == '"' {
		w.RawField("service_tier", raw)
		return
	}
	w.StringField("service_tier", cmp.Or(tier, tiers.Ordinary))
}

func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
