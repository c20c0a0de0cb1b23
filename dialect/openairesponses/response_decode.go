package openairesponses

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// DecodeResponse implements [dialect.Codec]. The response retains slices of body, which must not
// change afterwards.
func (c Codec) DecodeResponse(body []byte, o dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	d := responseDecoder{itemDecoder: newItemDecoder(c, o, true)}
	resp := &dragoman.Response{Origin: d.origin}
	r, sure, err := wirekit.OpenResponse(name, body, o, literal, d.rep)
	if err != nil {
		return resp, *d.rep, err
	}
	defer r.Return()
	d.unambiguous = sure
	rewritten := d.reg.Rewritten()
	end := d.decodeFields(r, resp)
	var failed error
	var calls []*dragoman.ToolCall
	ids := callIDs{d: &d.itemDecoder}
	for i, raw := range end.output {
		at := extra.Elem("/output", i)
		m, err := d.item(raw, at, i)
		if err != nil {
			failed = jsonwire.PlaceAt(at.String(), end.offsets[i], err)
			break
		}
		if d.head(raw).duplicate && m.Parts != nil && m.Parts[0].Kind() == codes.KindOpaque {
			d.unambiguous = false
			d.rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), "an item with a duplicate field is ambiguous and is not kept")
			continue
		}
		if d.misplacedPayload {
			d.unambiguous = false
			d.rep.Add(dragoman.Lowered, dragoman.Warn, at.String(), "the payload of a call is in the wrong field; the native form is not kept")
		}
		repeated := false
		for _, p := range m.Parts {
			if c, ok := p.(*dragoman.ToolCall); ok {
				if repeated = !ids.settle(c, at, i); !repeated {
					calls = append(calls, c)
				}
			}
		}
		if repeated {
			continue
		}
		if wirekit.DropCaseVariants(&m.Extra, "", itemKeys) {
			d.unambiguous = false
			d.rep.Add(dragoman.Dropped, dragoman.Warn, at.String(), "a field differs only in case from a known field; the native form is not kept")
		} else {
			d.withNative(&m, raw)
		}
		resp.Output = append(resp.Output, m)
	}
	resp.Stop = end.stop(d.reg, resp, calls)
	if failed == nil {
		failed = r.End()
	}
	if failed == nil && !end.hasOutput && resp.Error == nil {
		failed = errNoOutput
	}
	if failed != nil {
		return resp, *d.rep, wirekit.DecodeError(name, "response", failed)
	}
	if d.ambiguousPart {
		d.rep.Add(dragoman.Dropped, dragoman.Warn, "/output", "a field of a part is a duplicate or differs only in case; the native form is not kept")
	}
	if !o.NoNative && d.unambiguous && !d.ambiguousPart && !end.duplicate && !ids.clash && !ambiguous(calls) && d.reg.Rewritten() == rewritten {
		resp.Native = &dragoman.Sidecar{Dialect: name, Raw: body, Mirror: resp.Fingerprint()}
	}
	return resp, *d.rep, nil
}

// callIDs makes call ids unique within one response: an exact repeat is one call, the same id
// with other content is another call (decision 131, quirk B11).
type callIDs struct {
	d    *itemDecoder
	seen map[string]*dragoman.ToolCall
	// clash is set if two calls share an id. A client would run one of them twice, or send a
	// result for the wrong one.
	clash bool
}

// settle returns false for a call that exactly repeats an earlier one.
func (s *callIDs) settle(c *dragoman.ToolCall, at extra.Path, place int) bool {
	if s.seen == nil {
		s.seen = make(map[string]*dragoman.ToolCall)
	}
	if first, taken := s.seen[c.ID]; taken {
		s.clash = true
		if first.Name == c.Name && first.Namespace == c.Namespace && first.Payload == c.Payload && first.Arguments == c.Arguments {
			s.d.rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "call %q repeats an earlier one", c.ID)
			return false
		}
		s.d.makeID(c, at, place, "another call has the same call_id")
	}
	s.seen[c.ID] = c
	return true
}

var errNoOutput = errors.New("no output: check that this is an OpenAI Responses response")

type responseDecoder struct {
	itemDecoder
}

// ending holds the fields of a response object that describe its end.
type ending struct {
	status, reason string
	details        []byte
	compaction     bool
	hasOutput      bool
	duplicate      bool // it has a duplicate field
	output         [][]byte
	offsets        []int64
}

// stop derives the stop reason of a whole response. A response with an error failed, whatever
// its status is.
func (e *ending) stop(reg *interop.Registry, resp *dragoman.Response, calls []*dragoman.ToolCall) dragoman.Stop {
	status := e.status
	if status == "" && resp.Error != nil {
		status = "failed"
	}
	s := settleStop(reg, status, e.reason, resp.Error != nil, e.details, calls)
	if e.status == "" {
		s.Native = ""
	}
	e.compacted(&s)
	return s
}

func (e *ending) compacted(s *dragoman.Stop) {
	if e.compaction && s.Reason == dragoman.StopEnd {
		s.Reason = dragoman.StopCompaction
	}
}

// decodeFields decodes the fields of a response object into resp, except its output, which is returned
// as raw items. Echoed request fields are stored as extras.
func (d *responseDecoder) decodeFields(r *jsonwire.Reader, resp *dragoman.Response) (end ending) {
	var seen wirekit.KnownFields
	for key := range r.Object() {
		duplicate := seen.IsRepeated(responseKeys, key)
		end.duplicate = end.duplicate || duplicate
		switch k := string(key); {
		case k == "object":
			if raw := r.Raw(); string(raw) != `"response"` {
				end.compaction = string(raw) == `"response.compaction"`
				extra.Add(&resp.Extra, name, "", key, raw)
			}
		case k == "error", k == "incomplete_details", k == "usage", k == "output":
			d.decodeField(r, k, resp, &end)
		case r.Kind() == 'n' && !duplicate:
			extra.Add(&resp.Extra, name, "", key, r.Raw())
		case k == "id":
			resp.ID = r.String()
		case k == "model":
			resp.Model = r.String()
		case k == "created_at":
			raw := r.Number()
			resp.Created = unixTime(raw)
			if strings.ContainsAny(raw, ".eE") { // a float is written back as a float
				extra.Add(&resp.Extra, name, "", key, []byte(raw))
			}
		case k == "status":
			end.status = r.String()
		case k == "service_tier":
			resp.ServiceTier = r.String()
		case duplicate: // in other case, which many readers ignore
			d.rep.Addf(dragoman.Dropped, dragoman.Warn, "", "field %.40q differs only in case from a known field; the native form is not kept", key)
			r.Skip()
		default:
			extra.Add(&resp.Extra, name, "", key, r.Raw())
		}
	}
	return end
}

// responseKeys are the fields that determine the content of a response and whether its calls may
// run.
var responseKeys = []string{"status", "output", "error", "incomplete_details", "object", "id", "model", "created_at", "usage", "service_tier"}

// decodeField decodes a field for which null means absent.
func (d *responseDecoder) decodeField(r *jsonwire.Reader, key string, resp *dragoman.Response, end *ending) {
	end.hasOutput = end.hasOutput || key == "output"
	if r.Null() {
		return
	}
	switch key {
	case "error":
		if raw := r.Raw(); r.Err() == nil {
			resp.Error = decodeErrorObject(raw)
		}
	case "usage":
		resp.Usage = readUsage(r, d.rep)
	case "incomplete_details":
		end.details = r.Raw()
		end.reason = reasonIn(end.details)
	case "output":
		end.output, end.offsets = nil, nil
		for range r.Array() {
			raw := r.Raw()
			if r.Err() != nil {
				return
			}
			end.output = append(end.output, raw)
			end.offsets = append(end.offsets, r.Offset()-int64(len(raw)))
		}
	}
}

// unixTime parses a time in seconds, which some servers send as a float.
func unixTime(s string) time.Time {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.Unix(n, 0).UTC()
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Abs(f) > 1e15 {
		return time.Time{}
	}
	whole, frac := math.Modf(f)
	return time.Unix(int64(whole), int64(frac*1e9)).UTC()
}
