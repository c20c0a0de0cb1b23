package interop

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// WriteResult writes a result in the target's format. Media that the target cannot carry in a
// result is replaced by a note and returned, for the dialect to put somewhere else (quirk D13).
func (r *Registry) WriteResult(w *jsonwire.Writer, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) (spill []dragoman.Part, err error) {
	t, err := r.wire()
	if err != nil {
		return nil, err
	}
	return r.writeResultAs(w, t.Result, res, at, rep)
}

func (r *Registry) writeResultAs(w *jsonwire.Writer, format dragoman.Format, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) (spill []dragoman.Part, err error) {
	if a, ok := r.adapters[adapterKey{codes.ResultObject, "", format}]; ok {
		obj, sub, err := a.Adapt(dragoman.AdapterInput{Result: res})
		rep.Merge(at.String(), sub)
		if err == nil {
			w.Raw(obj)
		}
		return nil, err
	}
	codec := r.resultCodec(format)
	if codec == nil {
		return nil, errNoAdapter("result", format)
	}
	t := codec.Traits()
	res = unwrapEnvelope(res)
	id := r.ids.alias(res.CallID)
	if res.Envelope != nil && res.Envelope.Format != format {
		rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "native result of %s written as its text", res.Envelope.Format)
	}
	if res.Outcome == codes.OutcomeError && toolwire.NativeContent(res, format) != nil && !t.ResultFlag {
		rep.Add(dragoman.Dropped, dragoman.Warn, at.String(), "the error flag: a native result states its own outcome")
	}
	if !t.ResultItemID {
		extra.ReportItem(rep, res.ItemID, at, "/item_id")
	}
	spill = codec.WriteResult(view{r}, w, res, id, at, rep)
	extra.Report(rep, res.Extra, t.Dialect, at)
	return spill, nil
}

// ReadResult reads a result object of the target's dialect. If lift is set and the dialect has
// no error flag, the error prefix of the text sets the outcome.
func (r *Registry) ReadResult(obj json.RawMessage, lift bool, at extra.Path, rep *dragoman.Report) (*dragoman.ToolResult, error) {
	t, err := r.wire()
	if err != nil {
		return nil, err
	}
	return r.readResultAs(t.Result, obj, lift, at, rep)
}

func (r *Registry) readResultAs(format dragoman.Format, obj json.RawMessage, lift bool, at extra.Path, rep *dragoman.Report) (*dragoman.ToolResult, error) {
	if a, ok := r.results[format]; ok {
		res, sub, err := a.InspectResult(obj)
		rep.Merge(at.String(), sub)
		if err == nil && res == nil {
			err = toolwire.Fail(format, errEmptyResult)
		}
		return res, err
	}
	codec := r.resultCodec(format)
	if codec == nil {
		return nil, errNoAccessor("result", format)
	}
	res := &dragoman.ToolResult{}
	rd := jsonwire.NewReader(obj)
	codec.ReadResult(rd, res)
	if err := rd.End(); err != nil {
		return nil, toolwire.Fail(format, err)
	}
	res.CallID = r.ids.restore(res.CallID)
	if res.Name != "" {
		res.Namespace, res.Name, _ = r.PublicName(res.Namespace, res.Name)
	}
	if lift && !codec.Traits().ResultOutcome {
		liftError(res, at, rep)
	}
	return res, nil
}

func liftError(res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) {
	if len(res.Content) == 0 {
		return
	}
	t, ok := res.Content[0].(*dragoman.Text)
	if !ok {
		return
	}
	if rest, ok := strings.CutPrefix(t.Text, toolwire.ErrorPrefix); ok {
		t.Text, res.Outcome = rest, codes.OutcomeError
		rep.Add(dragoman.Moved, dragoman.Info, at.String(), `"ERROR: " at the start of the text read as the error flag`)
	}
}
