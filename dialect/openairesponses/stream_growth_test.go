package openairesponses

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// feedMany feeds events until the decoder refuses one.
func feedMany(n int, o dialect.DecodeOptions, event func(i int) string) (dialect.StreamDecoder, error) {
	d := Codec{}.NewStreamDecoder(o)
	for i := range n {
		if err := d.Feed(events(event(i)), func(dragoman.Event) error { return nil }); err != nil {
			return d, err
		}
	}
	return d, nil
}

func TestStreamGrowthCountsAgainstTheBound(t *testing.T) {
	const limit, size, few, many = 64 << 10, 8 << 10, 60, 2000 // a few parts only cost their text
	long := strings.Repeat("x", size)
	for what, event := range map[string]func(i int) string{
		"added items": func(i int) string { return added(i, fmt.Sprintf(`{"type":"message","role":"assistant","m":%q}`, long)) },
		"done items":  func(i int) string { return done(i, fmt.Sprintf(`{"type":"new","m":%q}`, long)) },
		"ids of items that were not added": func(i int) string {
			return fmt.Sprintf(`{"type":"response.output_text.delta","output_index":%d,"item_id":"%s%d","delta":"a"}`, i, long, i)
		},
		"done parts": func(i int) string {
			if i == 0 {
				return added(0, `{"type":"message","role":"assistant"}`)
			}
			return fmt.Sprintf(`{"type":"response.content_part.done","output_index":0,"content_index":%d,"part":{"type":"output_text","text":"","m":%q}}`, i, long)
		},
		"arguments of a call that was not added": func(int) string { return argDelta(0, long) },
		"summaries": func(i int) string {
			return fmt.Sprintf(`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":%d,"delta":%q}`, i, long)
		},
		"parts": func(i int) string {
			return fmt.Sprintf(`{"type":"response.output_text.delta","output_index":%d,"delta":"a"}`, i)
		},
	} {
		n := few
		if what == "parts" {
			n = many
		}
		if _, err := feedMany(n, dialect.DecodeOptions{MaxBytes: limit}, event); !errors.Is(err, dragoman.ErrTooLarge) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestStreamReportIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<10)
	for what, event := range map[string]func(i int) string{
		"event types": func(i int) string { return fmt.Sprintf(`{"type":"response.new%d%s"}`, i, long) },
		"repeated done part": func(int) string {
			return `{"type":"response.content_part.done","output_index":0,"content_index":0,"part":{"type":"output_text","text":"a","Text":"b"}}`
		},
		"repeated done call": func(i int) string {
			return done(0, fmt.Sprintf(`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":%d}"}`, i))
		},
		"repeated added call": func(i int) string {
			return added(0, fmt.Sprintf(`{"type":"function_call","call_id":"c","name":"f%d","arguments":""}`, i))
		},
	} {
		d, err := feedMany(600, dialect.DecodeOptions{NoNative: true}, event)
		if err != nil {
			t.Fatal(err)
		}
		losses := d.Report().Losses
		if size := len(fmt.Sprint(losses)); len(losses) > 65 || size > 65*200 {
			t.Errorf("%s: %d lines of %d bytes", what, len(losses), size)
		}
	}
}

// A call that is repeated many times in short events is not decoded each time.
func TestRepeatedCallIsNotDecodedEachTime(t *testing.T) {
	const n = 2000
	blank := strings.Repeat(" ", 100<<10)
	repeatDone := func(value string) string {
		return `{"type":"response.function_call_arguments.done","output_index":0,"arguments":` + value + `}`
	}
	misplaced := `{"type":"response.function_call_arguments.done","output_index":0,"input":"{}"}`
	begin := added(0, `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":""}`)
	for what, c := range map[string]struct{ args, end, repeat string }{
		"other arguments":        {`{"a":"` + blank + `"}`, "", repeatDone(`"{\"b\":1}"`)},
		"other form":             {blank + `{}`, "", repeatDone(`"{ }"`)},
		"wrong field":            {`{"a":"` + blank + `"}`, "", misplaced},
		"wrong field, same JSON": {blank + `{}`, "", strings.Replace(misplaced, "{}", "{ }", 1)},
		"after its end":          {`{"a":"` + blank + `"}`, done(0, `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{\"a\":\"`+blank+`\"}"}`), repeatDone(`"{\"b\":1}"`)},
		"done again":             {`{"a":"` + blank + `"}`, done(0, `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{\"a\":\"`+blank+`\"}"}`), done(0, `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}"}`)},
		"added again":            {"", added(0, `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"","m":"`+blank+`"}`), added(0, `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"","m":1}`)},
	} {
		first := []string{created, begin}
		if c.args != "" {
			first = append(first, argDelta(0, c.args))
		} else { // the first event is the one that the repeats are compared with
			first = []string{created, c.end}
			c.end = ""
		}
		if c.end != "" {
			first = append(first, c.end)
		}
		d := Codec{}.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
		drop := func(dragoman.Event) error { return nil }
		if err := d.Feed(events(first...), drop); err != nil {
			t.Fatal(err)
		}
		repeat := events(c.repeat)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			if err := d.Feed(repeat, drop); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		// Two thousand comparisons of a hundred kilobytes would allocate 200 megabytes.
		if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
			t.Errorf("%s: %d bytes allocated", what, got)
		}
	}
}
