package gemini_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// part returns a chunk with one candidate and one part.
func part(p string) string {
	return `{"candidates":[{"index":0,"content":{"role":"model","parts":[` + p + `]}}]}`
}

// fedChunks runs [codectest.FeedEvents] on chunks.
func fedChunks(n int, o dialect.DecodeOptions, chunk func(i int) string) (losses int, kept int64, err error) {
	return codectest.FeedEvents(gemini.Codec{}.NewStreamDecoder(o), n, func(i int) []byte { return []byte("data: " + chunk(i) + "\n\n") })
}

func TestQuirkC4_StoredStreamDataIsBounded(t *testing.T) {
	const limit = 1 << 20
	long := strings.Repeat("x", 1<<10)
	for what, chunk := range map[string]func(i int) string{
		"top-level fields": func(i int) string { return fmt.Sprintf(`{"m%d":%q}`, i, long) },
		"small fields":     func(i int) string { return fmt.Sprintf(`{"m%d":1}`, i) },
		"field names":      func(i int) string { return fmt.Sprintf(`{"%s%d":1}`, long, i) },
		"candidate fields": func(i int) string {
			return fmt.Sprintf(`{"candidates":[{"index":0,"m%d":%q}]}`, i, long)
		},
		"usage fields": func(i int) string { return fmt.Sprintf(`{"usageMetadata":{"m%d":%q}}`, i, long) },
		"tool counts among many fields": func(i int) string {
			return fmt.Sprintf(`{"usageMetadata":{"m%d":1,"toolUsePromptTokenCount":%d}}`, i, i+1)
		},
		"call ids": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"id":"%s%d","name":"f","args":{}}}`, long, i))
		},
		"call names": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"id":"%d","name":"%s","args":{}}}`, i, long))
		},
		"call arguments": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"id":"%d","name":"f","args":{"a":%q}}}`, i, long))
		},
		"call signatures": func(i int) string {
			return part(fmt.Sprintf(`{"thoughtSignature":%q,"functionCall":{"id":"%d","name":"f","args":{}}}`, long, i))
		},
		"text signatures": func(int) string { return part(fmt.Sprintf(`{"text":"x","thoughtSignature":%q}`, long)) },
		"call fields": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"id":"%d","name":"f","args":{},"m":%q}}`, i, long))
		},
		"fields of one call": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"name":"%s","willContinue":true,"m%d":%q}}`, []string{"f", ""}[min(i, 1)], i, long))
		},
		"part fields": func(i int) string {
			return part(fmt.Sprintf(`{"partMetadata":{"m":%q},"functionCall":{"id":"%d","name":"f","args":{}}}`, long, i))
		},
		"text fields": func(int) string {
			return part(fmt.Sprintf(`{"text":"","thought":true,"thoughtSignature":"s","partMetadata":{"m":%q}}`, long))
		},
		"media": func(int) string { return part(fmt.Sprintf(`{"inlineData":{"mimeType":"image/png","data":%q}}`, long)) },
		"partial arguments": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"name":"%s","willContinue":true,"partialArgs":[{"jsonPath":"$.a","stringValue":%q,"willContinue":true}]}}`, []string{"f", ""}[min(i, 1)], long))
		},
		"partial argument paths": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"name":"%s","willContinue":true,"partialArgs":[{"jsonPath":"$.%s%d","numberValue":1}]}}`, []string{"f", ""}[min(i, 1)], long, i))
		},
		"partial argument lists": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"name":"f%d","willContinue":true,"partialArgs":[{"jsonPath":"$.a[4000]","numberValue":1}]}}`, i))
		},
	} {
		_, kept, err := fedChunks(50_000, dialect.DecodeOptions{MaxBytes: limit}, chunk)
		if !errors.Is(err, dragoman.ErrTooLarge) || kept > 4*limit {
			t.Errorf("%s: stored %d bytes, error %v", what, kept, err)
		}
	}
}

// A value that every chunk repeats replaces the earlier one.
func TestRepeatedStreamValuesTakeNoMemory(t *testing.T) {
	const limit, n = 64 << 10, 20_000
	long := strings.Repeat("x", 1<<10)
	for what, chunk := range map[string]func(i int) string{
		"field":    func(i int) string { return fmt.Sprintf(`{"m":"%s%d"}`, long, i) },
		"model":    func(i int) string { return fmt.Sprintf(`{"modelVersion":"%s%d"}`, long, i) },
		"feedback": func(i int) string { return fmt.Sprintf(`{"promptFeedback":{"m":"%s%d"}}`, long, i) },
		"block reason": func(i int) string {
			return fmt.Sprintf(`{"promptFeedback":{"blockReason":"OTHER","m":"%s%d"}}`, long, i)
		},
		"call":            func(int) string { return part(`{"functionCall":{"id":"i","name":"f","args":{"a":1}}}`) },
		"call without id": func(int) string { return part(`{"functionCall":{"name":"f","args":{"a":1},"m":"` + long + `"}}`) },
		"call signature": func(i int) string {
			return part(fmt.Sprintf(`{"thoughtSignature":"%s%d","functionCall":{"name":"%s","willContinue":true}}`, long, i, []string{"f", ""}[min(i, 1)]))
		},
		"call fields": func(i int) string {
			return part(fmt.Sprintf(`{"partMetadata":"%s%d","functionCall":{"name":"%s","willContinue":true,"m":"%s%d"}}`, long, i, []string{"f", ""}[min(i, 1)], long, i))
		},
	} {
		losses, kept, err := fedChunks(n, dialect.DecodeOptions{MaxBytes: limit}, chunk)
		if err != nil || kept > 4*limit || losses > 4 {
			t.Errorf("%s: stored %d bytes and %d losses, error %v", what, kept, losses, err)
		}
	}
}

func TestDeltasOnlyDataIsNotBounded(t *testing.T) {
	const limit = 64 << 10
	long := strings.Repeat("x", 1<<10)
	for what, p := range map[string]string{
		"media":        `{"inlineData":{"mimeType":"image/png","data":"` + long + `"}}`,
		"signatures":   `{"text":"x","thoughtSignature":"` + long + `"}`,
		"fields":       `{"text":"x","thoughtSignature":"s","partMetadata":{"m":"` + long + `"}}`,
		"unknown part": `{"codeExecutionResult":{"output":"` + long + `"}}`,
	} {
		o := dialect.DecodeOptions{MaxBytes: limit, DeltasOnly: true}
		_, kept, err := fedChunks(4000, o, func(int) string { return part(p) })
		if err != nil || kept > 8*limit {
			t.Errorf("%s: stored %d bytes, error %v", what, kept, err)
		}
	}
}

// The limit on parts applies to all candidates together.
func TestQuirkC4_CandidatesShareThePartLimit(t *testing.T) {
	_, _, err := fedChunks(5000, dialect.DecodeOptions{}, func(i int) string {
		return fmt.Sprintf(`{"candidates":[{"index":%d,"content":{"parts":[{"text":"x","thoughtSignature":"s"}]}}]}`, i%100)
	})
	if !errors.Is(err, dragoman.ErrTooLarge) {
		t.Error(err)
	}
}

// Arguments count once, whether they arrive whole or as partialArgs.
func TestPartialArgsAreCountedOnce(t *testing.T) {
	const n = 100
	long := strings.Repeat("x", 1<<10)
	_, _, err := fedChunks(n, dialect.DecodeOptions{MaxBytes: n*len(long)*11/10 + 16<<10}, func(i int) string {
		return part(fmt.Sprintf(`{"functionCall":{"id":"%d","name":"f","partialArgs":[{"jsonPath":"$.a","stringValue":%q}]}}`, i, long))
	})
	if err != nil {
		t.Error(err)
	}
}
