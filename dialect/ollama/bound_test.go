package ollama_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// fedLines is [codectest.FeedEvents] for lines of JSON.
func fedLines(n int, o dialect.DecodeOptions, line func(i int) string) (losses int, kept int64, err error) {
	return codectest.FeedEvents(ollama.Codec{}.NewStreamDecoder(o), n, func(i int) []byte { return []byte(line(i) + "\n") })
}

func TestQuirkC4_StreamGrowthCountsAgainstTheBound(t *testing.T) {
	const limit = 1 << 20
	long := strings.Repeat("x", 1<<10)
	for what, line := range map[string]func(i int) string{
		"fields":       func(i int) string { return fmt.Sprintf(`{"m%d":%q}`, i, long) },
		"small fields": func(i int) string { return fmt.Sprintf(`{"m%d":1}`, i) },
		"field names":  func(i int) string { return fmt.Sprintf(`{"%s%d":1}`, long, i) },
		"images":       func(int) string { return fmt.Sprintf(`{"message":{"images":[%q]}}`, long) },
		"call ids": func(i int) string {
			return fmt.Sprintf(`{"message":{"tool_calls":[{"id":"%s%d","function":{"name":"f","arguments":{}}}]}}`, long, i)
		},
		"call names": func(int) string {
			return fmt.Sprintf(`{"message":{"tool_calls":[{"function":{"name":%q,"arguments":{}}}]}}`, long)
		},
		"call fields": func(int) string {
			return fmt.Sprintf(`{"message":{"tool_calls":[{"m":%q,"function":{"name":"f","arguments":{}}}]}}`, long)
		},
		"call arguments": func(int) string {
			return fmt.Sprintf(`{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a":%q}}}]}}`, long)
		},
		"malformed calls": func(int) string { return fmt.Sprintf(`{"message":{"tool_calls":[%q]}}`, long) },
	} {
		_, kept, err := fedLines(50_000, dialect.DecodeOptions{MaxBytes: limit}, line)
		if !errors.Is(err, dragoman.ErrTooLarge) || kept > 4*limit {
			t.Errorf("%s: kept %d bytes, then %v", what, kept, err)
		}
	}
}

// A value that every line repeats replaces the earlier one.
func TestRepeatedValuesTakeNoMemory(t *testing.T) {
	const limit, n = 64 << 10, 20_000
	long := strings.Repeat("x", 1<<10)
	for what, line := range map[string]func(i int) string{
		"field":          func(i int) string { return fmt.Sprintf(`{"m":"%s%d"}`, long, i) },
		"model":          func(i int) string { return fmt.Sprintf(`{"model":"%s%d"}`, long, i) },
		"message fields": func(i int) string { return fmt.Sprintf(`{"message":{"m%d%s":1}}`, i, strings.Repeat(long, 16)) },
		"call": func(int) string {
			return `{"message":{"tool_calls":[{"id":"i","function":{"name":"f","arguments":{"a":1}}}]}}`
		},
		"call with a problem": func(int) string {
			return `{"message":{"tool_calls":[{"id":"i","function":{"name":"f","arguments":"{"}}]}}`
		},
	} {
		losses, kept, err := fedLines(n, dialect.DecodeOptions{MaxBytes: limit}, line)
		if err != nil || kept > 4*limit || losses > 70 {
			t.Errorf("%s: kept %d bytes and %d losses, then %v", what, kept, losses, err)
		}
	}
}

func TestDeltasOnlyDoesNotCountAgainstTheBound(t *testing.T) {
	const limit = 64 << 10
	long := strings.Repeat("x", 1<<10)
	for what, m := range map[string]string{
		"images":          `{"images":["` + long + `"]}`,
		"malformed calls": `{"tool_calls":["` + long + `"]}`,
	} {
		_, kept, err := fedLines(1000, dialect.DecodeOptions{MaxBytes: limit, DeltasOnly: true}, func(int) string { return `{"message":` + m + `}` })
		if err != nil || kept > 8*limit {
			t.Errorf("%s: kept %d bytes, then %v", what, kept, err)
		}
	}
}

// Arguments count once; the bytes around them are not counted again.
func TestCallBytesCountOnce(t *testing.T) {
	const n = 100
	line := `{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a":"` + strings.Repeat("x", 1<<10) + `"}}}]}}`
	if _, _, err := fedLines(n, dialect.DecodeOptions{MaxBytes: n*len(line) + 16<<10}, func(int) string { return line }); err != nil {
		t.Error(err)
	}
}
