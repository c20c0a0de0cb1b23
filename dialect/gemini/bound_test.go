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

// part is a chunk whose only candidate says one part.
func part(p string) string {
	return `{"candidates":[{"index":0,"content":{"role":"model","parts":[` + p + `]}}]}`
}

// fedChunks is [codectest.Fed] for chunks.
func fedChunks(n int, o dialect.DecodeOptions, chunk func(i int) string) (losses int, kept int64, err error) {
	return codectest.Fed(gemini.Codec{}.NewStreamDecoder(o), n, func(i int) []byte { return []byte("data: " + chunk(i) + "\n\n") })
}

func TestQuirkC4_WhatGrowsWithTheChunksOfAStreamCountsAgainstItsBound(t *testing.T) {
	const limit = 1 << 20
	long := strings.Repeat("x", 1<<10)
	for what, chunk := range map[string]func(i int) string{
		"top-level members": func(i int) string { return fmt.Sprintf(`{"m%d":%q}`, i, long) },
		"small members":     func(i int) string { return fmt.Sprintf(`{"m%d":1}`, i) },
		"their names":       func(i int) string { return fmt.Sprintf(`{"%s%d":1}`, long, i) },
		"members of a candidate": func(i int) string {
			return fmt.Sprintf(`{"candidates":[{"index":0,"m%d":%q}]}`, i, long)
		},
		"members of the usage": func(i int) string { return fmt.Sprintf(`{"usageMetadata":{"m%d":%q}}`, i, long) },
		"counts of tools, among many": func(i int) string {
			return fmt.Sprintf(`{"usageMetadata":{"m%d":1,"toolUsePromptTokenCount":%d}}`, i, i+1)
		},
		"ids of calls": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"id":"%s%d","name":"f","args":{}}}`, long, i))
		},
		"names of calls": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"id":"%d","name":"%s","args":{}}}`, i, long))
		},
		"arguments of calls": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"id":"%d","name":"f","args":{"a":%q}}}`, i, long))
		},
		"signatures of calls": func(i int) string {
			return part(fmt.Sprintf(`{"thoughtSignature":%q,"functionCall":{"id":"%d","name":"f","args":{}}}`, long, i))
		},
		"signatures of texts": func(int) string { return part(fmt.Sprintf(`{"text":"x","thoughtSignature":%q}`, long)) },
		"members of calls": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"id":"%d","name":"f","args":{},"m":%q}}`, i, long))
		},
		"members of one call": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"name":"%s","willContinue":true,"m%d":%q}}`, []string{"f", ""}[min(i, 1)], i, long))
		},
		"members of parts": func(i int) string {
			return part(fmt.Sprintf(`{"partMetadata":{"m":%q},"functionCall":{"id":"%d","name":"f","args":{}}}`, long, i))
		},
		"members of texts": func(int) string {
			return part(fmt.Sprintf(`{"text":"","thought":true,"thoughtSignature":"s","partMetadata":{"m":%q}}`, long))
		},
		"media": func(int) string { return part(fmt.Sprintf(`{"inlineData":{"mimeType":"image/png","data":%q}}`, long)) },
		"pieces of arguments": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"name":"%s","willContinue":true,"partialArgs":[{"jsonPath":"$.a","stringValue":%q,"willContinue":true}]}}`, []string{"f", ""}[min(i, 1)], long))
		},
		"paths of pieces": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"name":"%s","willContinue":true,"partialArgs":[{"jsonPath":"$.%s%d","numberValue":1}]}}`, []string{"f", ""}[min(i, 1)], long, i))
		},
		"lists of pieces": func(i int) string {
			return part(fmt.Sprintf(`{"functionCall":{"name":"f%d","willContinue":true,"partialArgs":[{"jsonPath":"$.a[4000]","numberValue":1}]}}`, i))
		},
	} {
		_, kept, err := fedChunks(50_000, dialect.DecodeOptions{MaxBytes: limit}, chunk)
		if !errors.Is(err, dragoman.ErrTooLarge) || kept > 4*limit {
			t.Errorf("%s: %d bytes are kept, then %v", what, kept, err)
		}
	}
}

// What a stream says again in every chunk takes the place of what it said.
func TestWhatAStreamOnlySaysAgainTakesNoMemory(t *testing.T) {
	const limit, n = 64 << 10, 20_000
	long := strings.Repeat("x", 1<<10)
	for what, chunk := range map[string]func(i int) string{
		"a member":   func(i int) string { return fmt.Sprintf(`{"m":"%s%d"}`, long, i) },
		"a model":    func(i int) string { return fmt.Sprintf(`{"modelVersion":"%s%d"}`, long, i) },
		"a feedback": func(i int) string { return fmt.Sprintf(`{"promptFeedback":{"m":"%s%d"}}`, long, i) },
		"a refusal": func(i int) string {
			return fmt.Sprintf(`{"promptFeedback":{"blockReason":"OTHER","m":"%s%d"}}`, long, i)
		},
		"a call":         func(int) string { return part(`{"functionCall":{"id":"i","name":"f","args":{"a":1}}}`) },
		"one without id": func(int) string { return part(`{"functionCall":{"name":"f","args":{"a":1},"m":"` + long + `"}}`) },
		"its signature": func(i int) string {
			return part(fmt.Sprintf(`{"thoughtSignature":"%s%d","functionCall":{"name":"%s","willContinue":true}}`, long, i, []string{"f", ""}[min(i, 1)]))
		},
		"its members": func(i int) string {
			return part(fmt.Sprintf(`{"partMetadata":"%s%d","functionCall":{"name":"%s","willContinue":true,"m":"%s%d"}}`, long, i, []string{"f", ""}[min(i, 1)], long, i))
		},
	} {
		losses, kept, err := fedChunks(n, dialect.DecodeOptions{MaxBytes: limit}, chunk)
		if err != nil || kept > 4*limit || losses > 4 {
			t.Errorf("%s: %d bytes and %d losses are kept, then %v", what, kept, losses, err)
		}
	}
}

func TestWhatIsOnlyPassedOnDoesNotCountAgainstTheBound(t *testing.T) {
	const limit = 64 << 10
	long := strings.Repeat("x", 1<<10)
	for what, p := range map[string]string{
		"media":               `{"inlineData":{"mimeType":"image/png","data":"` + long + `"}}`,
		"signatures":          `{"text":"x","thoughtSignature":"` + long + `"}`,
		"members":             `{"text":"x","thoughtSignature":"s","partMetadata":{"m":"` + long + `"}}`,
		"what we do not know": `{"codeExecutionResult":{"output":"` + long + `"}}`,
	} {
		o := dialect.DecodeOptions{MaxBytes: limit, DeltasOnly: true}
		_, kept, err := fedChunks(4000, o, func(int) string { return part(p) })
		if err != nil || kept > 8*limit {
			t.Errorf("%s: %d bytes are kept, then %v", what, kept, err)
		}
	}
}

// The parts of all candidates together are those of one answer.
func TestQuirkC4_CandidatesShareTheBoundOfParts(t *testing.T) {
	_, _, err := fedChunks(5000, dialect.DecodeOptions{}, func(i int) string {
		return fmt.Sprintf(`{"candidates":[{"index":%d,"content":{"parts":[{"text":"x","thoughtSignature":"s"}]}}]}`, i%100)
	})
	if !errors.Is(err, dragoman.ErrTooLarge) {
		t.Error(err)
	}
}

// Arguments count once, however they came.
func TestPiecesOfArgumentsCountAsTheArgumentsTheyMake(t *testing.T) {
	const n = 100
	long := strings.Repeat("x", 1<<10)
	_, _, err := fedChunks(n, dialect.DecodeOptions{MaxBytes: n*len(long)*11/10 + 16<<10}, func(i int) string {
		return part(fmt.Sprintf(`{"functionCall":{"id":"%d","name":"f","partialArgs":[{"jsonPath":"$.a","stringValue":%q}]}}`, i, long))
	})
	if err != nil {
		t.Error(err)
	}
}
