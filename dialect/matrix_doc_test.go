package dialect_test

import (
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// matrixDoc collects the cells and prints them as docs/matrix.md.
type matrixDoc struct {
	features []string
	cells    map[string]string
	notes    []string
	numbers  map[string]int
}

func newMatrixDoc() *matrixDoc {
	return &matrixDoc{cells: map[string]string{}, numbers: map[string]int{}}
}

func key(feature, kind string, in, out dialect.Codec) string {
	return feature + "|" + kind + "|" + string(in.Dialect()) + "|" + string(out.Dialect())
}

func (d *matrixDoc) add(feature, kind string, in, out dialect.Codec, res cellResult) {
	if len(d.features) == 0 || d.features[len(d.features)-1] != feature {
		d.features = append(d.features, feature)
	}
	cell := ""
	var marks []string
	switch {
	case res.identical && len(diffFacts(res.before, res.after)) == 0:
		cell = "="
	case len(diffFacts(res.before, res.after)) == 0:
		cell = "✓"
	default:
		cell = "✗"
	}
	if res.borrowed {
		cell = "*" + cell
	}
	seen := map[int]bool{}
	for _, l := range res.report.Losses {
		n := d.note(l)
		if !seen[n] {
			seen[n] = true
			marks = append(marks, fmt.Sprint(n))
		}
	}
	if len(marks) > 0 {
		cell += " " + strings.Join(marks, ",")
	}
	d.cells[key(feature, kind, in, out)] = cell
}

func (d *matrixDoc) note(l dragoman.Loss) int {
	text := fmt.Sprintf("%s (%s): %s", l.Kind, l.Severity, l.Detail)
	if strings.HasSuffix(l.Detail, "has no such member") {
		text += ": `" + l.Path[strings.LastIndexByte(l.Path, '/')+1:] + "`"
	}
	if n, ok := d.numbers[text]; ok {
		return n
	}
	d.notes = append(d.notes, text)
	d.numbers[text] = len(d.notes)
	return len(d.notes)
}

var short = map[dragoman.Dialect]string{
	dragoman.OpenAIChat: "Chat", dragoman.OpenAIResponses: "Responses", dragoman.Anthropic: "Anthropic",
	dragoman.Gemini: "Gemini", dragoman.Ollama: "Ollama", dragoman.Bedrock: "Bedrock",
}

func (d *matrixDoc) String() string {
	var b strings.Builder
	b.WriteString("# The matrix\n\n")
	b.WriteString("Written by `go test ./dialect -run TestMatrix -update`; never by hand. What each feature looks like on each wire is in\n")
	b.WriteString("`dialect/testdata/matrix`. A cell reads: what was decoded from the left dialect, written in the right one, and read back.\n\n")
	b.WriteString("- `=` the same bytes\n- `✓` the same facts (a model that stands in the URL is none of the body)\n- `✗` something is lost, and the report says what\n- `*` the left dialect has no words of its own for the feature: it carries what was first written in it from another\n- numbers: lines of the report, below\n")
	for _, kind := range []string{"request", "response", "stream"} {
		fmt.Fprintf(&b, "\n## %s\n\n| feature |", strings.ToUpper(kind[:1])+kind[1:])
		for _, in := range codecs {
			for _, out := range codecs {
				fmt.Fprintf(&b, " %s → %s |", short[in.Dialect()], short[out.Dialect()])
			}
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(codecs)*len(codecs)) + "\n")
		for _, f := range d.features {
			row := "| " + strings.ReplaceAll(f[3:], "-", " ") + " |"
			empty := true
			for _, in := range codecs {
				for _, out := range codecs {
					cell := d.cells[key(f, kind, in, out)]
					empty = empty && cell == ""
					row += " " + cell + " |"
				}
			}
			if !empty {
				b.WriteString(row + "\n")
			}
		}
	}
	b.WriteString("\n## What the reports said\n\n")
	for i, n := range d.notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, n)
	}
	return b.String()
}
