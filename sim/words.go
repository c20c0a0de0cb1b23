package sim

import (
	"strings"

	"github.com/dragoman-go/dragoman/internal/text/words"
)

// wordsOf are the words of a text or name, in small letters.
func wordsOf(text string) []string { return words.Split(text) }

// stem takes the endings of English off a word, roughly: words are compared, not
// shown.
func stem(word string) string {
	for _, end := range []string{"ings", "ing", "ies", "ers", "er", "ed", "es", "s"} {
		if s, ok := strings.CutSuffix(word, end); ok && len(s) >= 3 {
			return strings.TrimSuffix(s, "e")
		}
	}
	return strings.TrimSuffix(word, "e")
}

// stems are the words of a text that say something, each once, without endings.
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

// stopWords say nothing about what is wanted.
const stopWords = " a about all also am an and any are as at be been but by can could did do does for from give had " +
	"has have hello hey hi how i if in into is it its let like may me might my need now of off ok on " +
	"one or our out please s should so some t tell than thanks that the their them then there these " +
	"they this those to too up us use using want was we were what when where which who why will with " +
	"would yes you your "

func isStopWord(w string) bool { return containsWord(stopWords, w) }

// commonVerbs begin the names of many tools, and so say little about which one
// is meant.
// They stand here with their endings and without.
const commonVerbs = " add call check create creat do fetch find get list make mak new put query read run search set show update updat "

func isCommonVerb(w string) bool { return containsWord(commonVerbs, w) }

// containsWord looks for a word in a list that has a blank around each.
func containsWord(list, w string) bool { return strings.Contains(list, " "+w+" ") }

// kin are words that people say where a tool has another one: the word of the
// tool, then theirs.
var kin = []struct{ tool, said string }{
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

// kinOf are the stems of what people say for the words of a tool, which has some
// stems.
func kinOf(has func(stem string) bool) []string {
	var out []string
	for _, k := range kin {
		if has(stem(k.tool)) {
			out = append(out, stems(k.said)...)
		}
	}
	return out
}
