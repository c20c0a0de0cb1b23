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

func TestWhateverGrowsWithAStreamCountsAgainstItsBound(t *testing.T) {
	const limit, piece, few, many = 64 << 10, 8 << 10, 60, 2000 // few parts cost nothing but their text
	long := strings.Repeat("x", piece)
	for what, event := range map[string]func(i int) string{
		"items that are added": func(i int) string { return added(i, fmt.Sprintf(`{"type":"message","role":"assistant","m":%q}`, long)) },
		"items that are done":  func(i int) string { return done(i, fmt.Sprintf(`{"type":"new","m":%q}`, long)) },
		"ids of items never added": func(i int) string {
			return fmt.Sprintf(`{"type":"response.output_text.delta","output_index":%d,"item_id":"%s%d","delta":"a"}`, i, long, i)
		},
		"parts that are done": func(i int) string {
			if i == 0 {
				return added(0, `{"type":"message","role":"assistant"}`)
			}
			return fmt.Sprintf(`{"type":"response.content_part.done","output_index":0,"content_index":%d,"part":{"type":"output_text","text":"","m":%q}}`, i, long)
		},
		"arguments of a call never added": func(int) string { return argDelta(0, long) },
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

func TestTheReportOfAStreamDoesNotGrowWithIt(t *testing.T) {
	long := strings.Repeat("x", 1<<10)
	for what, event := range map[string]func(i int) string{
		"types of events": func(i int) string { return fmt.Sprintf(`{"type":"response.new%d%s"}`, i, long) },
		"a part that is done again": func(int) string {
			return `{"type":"response.content_part.done","output_index":0,"content_index":0,"part":{"type":"output_text","text":"a","Text":"b"}}`
		},
		"a call that is done again": func(i int) string {
			return done(0, fmt.Sprintf(`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":%d}"}`, i))
		},
		"a call that is added again": func(i int) string {
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

// A call that is told again and again, in few bytes, is not read again each time.
func TestACallThatIsToldAgainIsNotReadEachTime(t *testing.T) {
	const n = 2000
	blank := strings.Repeat(" ", 100<<10)
	again := func(value string) string {
		return `{"type":"response.function_call_arguments.done","output_index":0,"arguments":` + value + `}`
	}
	stray := `{"type":"response.function_call_arguments.done","output_index":0,"input":"{}"}`
	begin := added(0, `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":""}`)
	for what, c := range map[string]struct{ args, end, repeat string }{
		"in other words":         {`{"a":"` + blank + `"}`, "", again(`"{\"b\":1}"`)},
		"in another spelling":    {blank + `{}`, "", again(`"{ }"`)},
		"in the wrong place":     {`{"a":"` + blank + `"}`, "", stray},
		"again in the wrong one": {blank + `{}`, "", strings.Replace(stray, "{}", "{ }", 1)},
		"after its end":          {`{"a":"` + blank + `"}`, done(0, `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{\"a\":\"`+blank+`\"}"}`), again(`"{\"b\":1}"`)},
		"as done another time":   {`{"a":"` + blank + `"}`, done(0, `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{\"a\":\"`+blank+`\"}"}`), done(0, `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}"}`)},
		"as added another time":  {"", added(0, `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"","m":"`+blank+`"}`), added(0, `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"","m":1}`)},
	} {
		first := []string{created, begin}
		if c.args != "" {
			first = append(first, argDelta(0, c.args))
		} else { // it begins with what the repeats are compared with
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
		// Two thousand looks at a hundred kilobytes would allocate 200 megabytes.
		if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
			t.Errorf("%s: %d bytes allocated", what, got)
		}
	}
}
