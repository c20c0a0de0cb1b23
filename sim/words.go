package sim

import (
	"strings"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

// wordsOf returns the words of a text or name, in lower case.
func wordsOf(text string) []string { return textkit.Words(text) }

// stem removes common English endings from a word. It is a rough approximation, used only
// to compare words.
func stem(word string) string {
	for _, end := range []string{"ings", "ing", "ies", "ers", "er", "ed", "es", "s"} {
		if s, ok := strings.CutSuffix(word, end); ok && len(s) >= 3 {
			return strings.TrimSuffix(s, "e")
		}
	}
	return strings.TrimSuffix(word, "e")
}

// stems returns the distinct stems of a text, without stop words.
func stems(text string) []string {
	var out []string
	seen := wordSet{}
	for _, w := range wordsOf(text) {
		if s := stem(w); !isStopWord(w) && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// stopWords carry no information about what the user wants.
const stopWords = " a about all also am an and any are as at be been but by can could did do does for from give had " +
	"has have hello hey hi how i if in into is it its let like may me might my need now of off ok on " +
	"one or our out please s should so some t tell than thanks that the their them then there these " +
	"they this those to too up us use using want was we were what when where which who why will with " +
	"would yes you your "

func isStopWord(w string) bool { return containsWord(stopWords, w) }

// commonVerbs begin the names of many tools, so they say little about which tool is meant.
// The list has them with their endings and as stems.
const commonVerbs = " add call check create creat do fetch find get list make mak new put query read run search set show update updat "

func isCommonVerb(w string) bool { return containsWord(commonVerbs, w) }

// containsWord looks up a word in a list that has spaces around each word.
func containsWord(list, w string) bool { return strings.Contains(list, " "+w+" ") }

// synonyms maps a word in the name of a tool to words that people use instead.
var synonyms = []struct{ tool, given string }{
	{"weather", "coat umbrella jacket rain raining snow snowing sunny cold warm hot temperature forecast degrees"},
	{"forecast", "weather rain snow tomorrow"},
	{"time", "clock hour late"},
	{"add", "plus sum total"},
	{"sum", "plus add total"},
	{"multiply", "times product"},
	{"subtract", "minus less difference"},
	{"divide", "divided quotient"},
	{"calculate", "plus minus times divided compute math much"},
	{"calculator", "plus minus times divided compute calculate math"},
	{"search", "find look lookup google"},
	{"read", "open show cat print contents"},
	{"write", "save store"},
	{"delete", "remove erase"},
	{"list", "show which"},
	{"send", "mail message tell"},
	{"translate", "say"},
	{"shell", "command terminal bash"},
	{"bash", "command terminal shell"},
	{"patch", "edit change fix"},
}

// synonymsOf returns the stems of the synonyms of a tool's words. has reports whether a stem
// is one of the tool's.
func synonymsOf(has func(stem string) bool) []string {
	var out []string
	for _, k := range synonyms {
		if has(stem(k.tool)) {
			out = append(out, stems(k.given)...)
		}
	}
	return out
}
