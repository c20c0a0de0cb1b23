package recorded_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// TestRecordedTrafficKeepsItsMeaning replays every recorded exchange of the
// six APIs and checks that:
//   - the decoded values equal an independent reading of the raw JSON
//   - unchanged requests and responses are byte-identical when encoded
//   - whatever is rebuilt from the canonical model has the same meaning, or
//     differs in a way that an explanation names
func TestRecordedTrafficKeepsItsMeaning(t *testing.T) {
	var heads []string
	var tallies []*traffic.Tally
	for _, a := range apis() {
		heads = append(heads, a.File)
		counts := &traffic.Tally{}
		tallies = append(tallies, counts)
		t.Run(a.File, func(t *testing.T) {
			xs := traffic.Recorded(t, a.File)
			counts.Add("exchanges", len(xs))
			t.Run("requests", func(t *testing.T) { checkRequests(t, a, xs, counts) })
			t.Run("responses", func(t *testing.T) { checkResponses(t, a, xs, counts) })
			t.Run("streams", func(t *testing.T) { checkStreams(t, a, xs, counts) })
			t.Run("errors", func(t *testing.T) { checkErrors(t, a, xs, counts) })
		})
	}
	t.Log(traffic.Table(heads, tallies))
}

func checkRequests(t *testing.T, a api, xs []traffic.Exchange, counts *traffic.Tally) {
	bad := traffic.Checked(undecodableRequests[a.File])
	differing := explain(requestExplanations[a.File])
	why := map[string]int{}
	for _, x := range xs {
		sent, ok := x.Request()
		if !ok {
			counts.Add("requests not recorded", 1)
			continue
		}
		body := string(sent)
		counts.Add("requests", 1)
		req, report, err := a.Codec.DecodeRequest(sent, dialect.DecodeOptions{})
		if err != nil {
			if !bad.Has(x.ID()) {
				t.Errorf("%s: request: %v", x.ID(), err)
			}
			counts.Add("requests that cannot be decoded", 1)
			continue
		}
		if err := report.Err(dragoman.Warn); err != nil {
			t.Errorf("%s: decoding the request: %v", x.ID(), err)
		}
		if _, err := a.Codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true}); crosstest.WithoutMessages(err) {
			counts.Add("requests refused for lack of messages", 1)
			continue
		}
		if same, err := a.Codec.EncodeRequest(req, dialect.EncodeOptions{}); err != nil || string(same.Body) != body {
			t.Errorf("%s: an unchanged request is not byte-identical (%v)\n%s", x.ID(), err, firstDifference(body, string(same.Body)))
		} else {
			counts.Add("requests byte-identical", 1)
		}
		other := *req
		other.Model += "-other"
		renamed, err := a.Codec.EncodeRequest(&other, dialect.EncodeOptions{})
		if want := withOtherModel(body, req.Model); want != "" && (err != nil || string(renamed.Body) != want) {
			t.Errorf("%s: a change of model changes other bytes (%v)\n%s", x.ID(), err, firstDifference(want, string(renamed.Body)))
		}
		if a.Codec.Limits().ModelInURL && req.Model == "" {
			// A value in the URL does not change the body.
			other.Stream = !other.Stream
			if same, err := a.Codec.EncodeRequest(&other, dialect.EncodeOptions{}); err != nil || string(same.Body) != body {
				t.Errorf("%s: a value in the URL changes the body (%v)\n%s", x.ID(), err, firstDifference(body, string(same.Body)))
			}
		}
		rebuilt, err := a.Codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Errorf("%s: rebuilding the request: %v", x.ID(), err)
			continue
		}
		was, err := decodeJSON(sent)
		if err != nil {
			t.Errorf("%s: %v", x.ID(), err)
			continue
		}
		is, err := decodeJSON(rebuilt.Body)
		if err != nil {
			t.Errorf("%s: the rebuilt request is not JSON: %v\n%.300s", x.ID(), err, rebuilt.Body)
			continue
		}
		ds := diff("", was, is)
		equal := len(ds) == 0
		if a.written != nil && !equal {
			a.written(traffic.Object(was), why)
			ds = diff("", was, is)
		}
		if equal {
			counts.Add("requests rebuilt equal", 1)
		} else {
			counts.Add("requests rebuilt with explained differences", 1)
		}
		differing.add(x.ID(), ds)
	}
	bad.Report(t, "undecodable requests")
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		t.Logf("request: %5d × %s", why[reason], reason)
	}
	differing.report(t, "request")
}

// withOtherModel returns the body with another model, or "" if the model's
// text does not occur exactly once.
func withOtherModel(body, model string) string {
	old := `"` + model + `"`
	if model == "" || strings.Count(body, old) != 1 {
		return ""
	}
	return strings.Replace(body, old, `"`+model+`-other"`, 1)
}

func checkResponses(t *testing.T, a api, xs []traffic.Exchange, counts *traffic.Tally) {
	bad, incomplete := traffic.Checked(undecodableResponses[a.File]), traffic.Checked(incompleteResponses[a.File])
	changed := newMeanings(responseExplanations[a.File])
	for _, x := range xs {
		body, kind := a.response(t, &x)
		if kind != wholeResponse {
			continue
		}
		counts.Add("responses", 1)
		resp, report, err := a.Codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err := report.Err(dragoman.Warn); err != nil {
			t.Errorf("%s: decoding the response: %v", x.ID(), err)
		}
		if err != nil {
			if !bad.Has(x.ID()) {
				t.Errorf("%s: response: %v", x.ID(), err)
			}
			counts.Add("responses that cannot be decoded", 1)
			continue
		}
		raw, err := decodeObject(body)
		if err != nil {
			t.Errorf("%s: the codec decodes an invalid JSON document: %v", x.ID(), err)
			continue
		}
		want := a.whole(raw)
		countContent(counts, "responses", want)
		got := canonicalReading(resp)
		for _, d := range want.differences(got) {
			t.Errorf("%s: response: %s", x.ID(), d)
		}
		if same, err := a.Codec.EncodeResponse(resp, dialect.EncodeOptions{}); err == nil && string(same.Body) != body && incomplete.Has(x.ID()) {
			counts.Add("responses written as incomplete", 1)
		} else if err != nil || string(same.Body) != body {
			t.Errorf("%s: an unchanged response is not byte-identical (%v)\n%s", x.ID(), err, firstDifference(body, string(same.Body)))
		} else {
			counts.Add("responses byte-identical", 1)
		}
		again, err := rebuild(a, resp, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Errorf("%s: rebuilding the response: %v", x.ID(), err)
			continue
		}
		counts.Add("responses rebuilt"+changed.add(x.ID(), got, canonicalReading(again)), 1)
	}
	bad.Report(t, "undecodable responses")
	incomplete.Report(t, "responses written as incomplete")
	changed.report(t, "rebuilt response")
}

// rebuild encodes a response and decodes the result.
func rebuild(a api, resp *dragoman.Response, o dialect.EncodeOptions) (*dragoman.Response, error) {
	enc, err := a.Codec.EncodeResponse(resp, o)
	if err != nil {
		return nil, err
	}
	again, _, err := a.Codec.DecodeResponse(enc.Body, dialect.DecodeOptions{})
	return again, err
}

func checkStreams(t *testing.T, a api, xs []traffic.Exchange, counts *traffic.Tally) {
	bad := traffic.Checked(undecodableStreams[a.File])
	changed := newMeanings(streamExplanations[a.File])
	collected := newMeanings(collectedExplanations[a.File])
	revised := traffic.Checked(revisedStreams[a.File])
	sampled := 0
	for _, x := range xs {
		body, kind := a.response(t, &x)
		if kind != streamResponse {
			continue
		}
		counts.Add("streams", 1)
		events, done, err := a.objects(body)
		if err != nil {
			t.Logf("%s: the independent reader stops: %v", x.ID(), err)
		}
		want := a.stream(events, done)
		countContent(counts, "streams", want)

		resp, out, err := reencodeInChunks(a, body, nil)
		got := streamReading(resp, err)
		var broken *dragoman.DecodeError
		if errors.As(err, &broken) {
			if !bad.Has(x.ID()) {
				t.Errorf("%s: stream: %v", x.ID(), err)
			}
			counts.Add("streams that cannot be decoded", 1)
			continue
		}
		for _, d := range want.differences(got) {
			t.Errorf("%s: stream: %s", x.ID(), d)
		}
		if want.Failed || want.Broken {
			counts.Add("streams that report an error or break off", 1)
		}
		if a.namesEvents() && !strings.Contains(body, "event:") {
			// The recording lacks event names, which servers do send.
			named, _, err := reencodeInChunks(a, withEventNames(body), nil)
			for _, d := range want.differences(streamReading(named, err)) {
				t.Errorf("%s: stream with event names: %s", x.ID(), d)
			}
			counts.Add("streams recorded without event names", 1)
		}
		if err == nil {
			for _, lost := range lostValues(a, t, events, out) {
				t.Errorf("%s: the stream re-encoded in its dialect lacks %s", x.ID(), lost)
			}
			counts.Add("streams re-encoded in their dialect", 1)
		}

		plain, plainErr := decodedEvents(a, body, dialect.DecodeOptions{NoNative: true}, nil)
		if fmt.Sprint(err) != fmt.Sprint(plainErr) {
			t.Errorf("%s: decoding without native chunks ends with %v, with them %v", x.ID(), plainErr, err)
		}
		if err := wellFormed(plain); err != nil && !revised.Has(x.ID()) {
			t.Errorf("%s: the events are out of order: %v", x.ID(), err)
		}
		if len(body) < 20_000 && sampled < 60 || x.I == 3 && len(body) < 100_000 {
			sampled++
			one, _ := decodedEvents(a, body, dialect.DecodeOptions{NoNative: true}, singleBytes(len(body)))
			if w, g := fmt.Sprint(storedEvents(t, plain)), fmt.Sprint(storedEvents(t, one)); w != g {
				t.Errorf("%s: feeding byte by byte changes the events\n%s", x.ID(), firstDifference(w, g))
			}
			counts.Add("streams fed byte by byte", 1)
		}
		if want.Failed || want.Broken {
			continue
		}
		again, err := reencode(a, plain)
		if err != nil && revised.Has(x.ID()) && again != nil {
			err = nil
		}
		if err != nil {
			t.Errorf("%s: rebuilding the stream from its events: %v", x.ID(), err)
			continue
		}
		got.FirstID = want.FirstID
		counts.Add("streams rebuilt"+changed.add(x.ID(), got, streamReading(again, nil)), 1)

		whole, err := rebuild(a, collectEvents(plain), dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Errorf("%s: writing the stream as a response: %v", x.ID(), err)
			continue
		}
		counts.Add("streams written whole"+collected.add(x.ID(), got, canonicalReading(whole)), 1)
	}
	bad.Report(t, "undecodable streams")
	revised.Report(t, "streams that revise their deltas")
	changed.report(t, "rebuilt stream")
	collected.report(t, "stream written as a response")
}

// reencodeInChunks decodes a stream in chunks of the given sizes and re-encodes it with its native chunks.
func reencodeInChunks(a api, body string, sizes []int) (*dragoman.Response, string, error) {
	dec := a.Codec.NewStreamDecoder(dialect.DecodeOptions{})
	enc := a.Codec.NewStreamEncoder(dialect.EncodeOptions{StreamUsage: true})
	var col dragoman.Collector
	var out []byte
	emit := func(ev dragoman.Event) error {
		col.Add(ev)
		var err error
		out, err = enc.Encode(out, ev)
		return err
	}
	err := feed(dec, []byte(body), sizes, emit)
	resp, _ := col.Response()
	var encErr error
	if out, encErr = enc.Close(out); err == nil {
		err = encErr
	}
	return resp, string(out), err
}

// feed passes body to a decoder in chunks of the given sizes, then the rest,
// then closes the decoder.
func feed(dec dialect.StreamDecoder, body []byte, sizes []int, emit func(dragoman.Event) error) error {
	for _, n := range sizes {
		n = min(n, len(body))
		// Feed a copy and overwrite it afterwards: a decoder must not keep it.
		piece := bytes.Clone(body[:n])
		if err := dec.Feed(piece, emit); err != nil {
			return errors.Join(err, dec.Close(emit))
		}
		for i := range piece {
			piece[i] = '!'
		}
		body = body[n:]
	}
	if len(body) > 0 {
		if err := dec.Feed(body, emit); err != nil {
			return errors.Join(err, dec.Close(emit))
		}
	}
	return dec.Close(emit)
}

func decodedEvents(a api, body string, o dialect.DecodeOptions, sizes []int) ([]dragoman.Event, error) {
	var evs []dragoman.Event
	err := feed(a.Codec.NewStreamDecoder(o), []byte(body), sizes, func(ev dragoman.Event) error {
		evs = append(evs, ev)
		return nil
	})
	return evs, err
}

// reencode encodes events as a stream of the API and decodes the result.
func reencode(a api, evs []dragoman.Event) (*dragoman.Response, error) {
	enc := a.Codec.NewStreamEncoder(dialect.EncodeOptions{StreamUsage: true})
	var out []byte
	var err error
	for _, ev := range evs {
		if out, err = enc.Encode(out, ev); err != nil {
			return nil, err
		}
	}
	if out, err = enc.Close(out); err != nil {
		return nil, err
	}
	again, err := decodedEvents(a, string(out), dialect.DecodeOptions{NoNative: true}, nil)
	if err != nil {
		return nil, err
	}
	return collectEvents(again), wellFormed(again)
}

func collectEvents(evs []dragoman.Event) *dragoman.Response {
	var col dragoman.Collector
	for _, ev := range evs {
		col.Add(ev)
	}
	resp, _ := col.Response()
	return resp
}

func streamReading(resp *dragoman.Response, err error) reading {
	r := canonicalReading(resp)
	if errors.Is(err, dragoman.ErrIncompleteStream) {
		r.Broken, r.Failed = true, false
	}
	return r
}

func singleBytes(n int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = 1
	}
	return sizes
}

// storedEvents returns the stored form of events, for comparison.
func storedEvents(t *testing.T, evs []dragoman.Event) []string {
	t.Helper()
	var out []string
	for _, ev := range evs {
		b, err := dragoman.MarshalEvent(ev)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b)+"\n")
	}
	return out
}

// wellFormed checks the guarantees of a decoder on its events.
func wellFormed(evs []dragoman.Event) error {
	type key struct{ choice, index int }
	open := map[key]*strings.Builder{}
	next := map[int]int{}
	for i, ev := range evs {
		last := i == len(evs)-1
		switch ev := ev.(type) {
		case *dragoman.ResponseStart:
			if i != 0 {
				return fmt.Errorf("event %d is a second start", i)
			}
		case *dragoman.PartStart:
			if ev.Index != next[ev.Choice] {
				return fmt.Errorf("event %d starts part %d, want %d", i, ev.Index, next[ev.Choice])
			}
			next[ev.Choice]++
			open[key{ev.Choice, ev.Index}] = new(strings.Builder)
		case *dragoman.PartDelta:
			b := open[key{ev.Choice, ev.Index}]
			if b == nil {
				return fmt.Errorf("event %d is a delta of part %d, which is not open", i, ev.Index)
			}
			if ev.Summary == 0 {
				b.WriteString(ev.Text)
			}
		case *dragoman.PartEnd:
			b := open[key{ev.Choice, ev.Index}]
			if b == nil {
				return fmt.Errorf("event %d ends part %d, which is not open", i, ev.Index)
			}
			delete(open, key{ev.Choice, ev.Index})
			final := b.String()
			switch p := ev.Part.(type) {
			case *dragoman.Text:
				final = p.Text
			case *dragoman.Refusal:
				final = p.Text
			case *dragoman.ToolCall:
				final = p.Arguments
			case *dragoman.Reasoning:
				final = p.Text
			}
			// The end may add text that no delta had, but must not contradict the deltas.
			if !strings.HasPrefix(final, b.String()) {
				return fmt.Errorf("event %d: the deltas have %.80q, the end has %.80q", i, b.String(), final)
			}
		case *dragoman.ResponseEnd, *dragoman.StreamError:
			if !last {
				return fmt.Errorf("event %d of %d is terminal", i, len(evs))
			}
			if len(open) > 0 {
				return fmt.Errorf("%d part(s) are open at the end", len(open))
			}
		}
		if last && ev.Type() != "response_end" && ev.Type() != "stream_error" {
			return fmt.Errorf("the last event is a %s", ev.Type())
		}
	}
	if len(evs) == 0 {
		return errors.New("no events")
	}
	return nil
}

func checkErrors(t *testing.T, a api, xs []traffic.Exchange, counts *traffic.Tally) {
	for _, x := range xs {
		body, kind := a.response(t, &x)
		if kind != errorResponse {
			continue
		}
		counts.Add("error responses", 1)
		e := a.Codec.DecodeError(x.Status, nil, []byte(body))
		switch {
		case e == nil:
			t.Errorf("%s: no error from status %d", x.ID(), x.Status)
			continue
		case e.Status != x.Status, e.Message == "":
			t.Errorf("%s: status %d, message %q from %.200s", x.ID(), e.Status, e.Message, body)
		case strings.Contains(e.Message, "{") && !strings.Contains(body, `{\"`):
			t.Errorf("%s: the message is unparsed JSON: %.200s", x.ID(), e.Message)
		}
		if want := sensibleClasses[x.Status]; !strings.Contains(want, string(e.Class)) {
			t.Errorf("%s: status %d is class %q, want one of %s: %.200s", x.ID(), x.Status, e.Class, want, body)
		}
		// Clients of the gateway must get the same error.
		status, again, _ := a.Codec.EncodeError(e)
		if back := a.Codec.DecodeError(status, nil, again); back.Message != e.Message || back.Class != e.Class {
			t.Errorf("%s: the re-encoded error is %s %q, was %s %q", x.ID(), back.Class, back.Message, e.Class, e.Message)
		}
	}
}

// sensibleClasses lists the acceptable error classes of each status.
var sensibleClasses = map[int]string{
	400: "bad_request context_length policy too_large authentication quota not_found",
	401: "authentication permission",
	403: "permission authentication policy quota",
	404: "not_found",
	429: "rate_limit quota",
	500: "server",
}

func countContent(counts *traffic.Tally, what string, r reading) {
	for _, c := range r.Choices {
		if c.Text != "" {
			counts.Add(what+" with text", 1)
		}
		if c.Reasoning != "" || len(c.Summaries)+len(c.Opaque) > 0 {
			counts.Add(what+" with reasoning", 1)
		}
		counts.Add("calls in "+what, len(c.Calls))
		for _, k := range c.Calls {
			if !k.Runs {
				counts.Add("calls that must not run in "+what, 1)
			}
		}
		counts.Add("opaque items in "+what, len(c.Others))
	}
	if len(r.Usage) > 0 {
		counts.Add(what+" with usage", 1)
	}
}

func firstDifference(want, got string) string {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	from := max(0, i-60)
	return fmt.Sprintf("at byte %d\nwant …%.200q\ngot  …%.200q", i, want[from:], got[from:])
}
