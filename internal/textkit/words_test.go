package textkit_test

import (
	"slices"
	"testing"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

func TestSplitSpellings(t *testing.T) {
	for _, text := range []string{"get_weather", "getWeather", "get weather", "Get-Weather!", " GET.WEATHER "} {
		if got := textkit.Words(text); !slices.Equal(got, []string{"get", "weather"}) {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := textkit.Words("…"); got != nil {
		t.Errorf("%q", got)
	}
}

func TestCountSingular(t *testing.T) {
	for n, want := range map[int]string{0: "0 bytes", 1: "1 byte", 2: "2 bytes", -1: "-1 bytes"} {
		if got := textkit.Count(n, "byte"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := textkit.Count(int64(2), "entry") + ", " + textkit.Count(2, "key"); got != "2 entries, 2 keys" {
		t.Errorf("%q", got)
	}
}

func TestSuggestionsForMisspelledWords(t *testing.T) {
	names := []string{"openai", "openai-chat", "anthropic", "gemini", "sim", "xai", "sim/planner"}
	for wrote, want := range map[string]string{
		"antropic": "anthropic", "Anthropic": "anthropic", "opanai": "openai", "openai_chat": "openai-chat", "gemni": "gemini",
		"simm": "sim", "planner": "sim/planner", "nosuch": "", "": "", "x": "",
	} {
		if got := textkit.Near(wrote, names); got != want {
			t.Errorf("%q: %q, want %q", wrote, got, want)
		}
	}
	if got := textkit.Suggest("opanai", names); got != "; did you mean openai?" {
		t.Errorf("%q", got)
	}
	if got := textkit.Suggest("sim", names) + textkit.Suggest("nosuch", names); got != "" {
		t.Errorf("%q", got)
	}
}
