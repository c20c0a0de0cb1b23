package words_test

import (
	"slices"
	"testing"

	"github.com/dragoman-go/dragoman/internal/words"
)

func TestNamesInEverySpellingAreTheSameWords(t *testing.T) {
	for _, text := range []string{"get_weather", "getWeather", "get weather", "Get-Weather!", " GET.WEATHER "} {
		if got := words.Split(text); !slices.Equal(got, []string{"get", "weather"}) {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := words.Split("…"); got != nil {
		t.Errorf("%q", got)
	}
}
