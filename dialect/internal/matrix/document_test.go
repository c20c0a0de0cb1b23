package matrix_test

import (
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// matrixDoc collects the cells and formats them as docs/matrix.md.
type matrixDoc struct {
	features []string
	cells    map[string]matrixMark
	notes    []string
	numbers  map[string]int
}

// matrixMark is the content of a cell: how the decoded result compares with the
// original, and the numbers of the notes for its losses.
type matrixMark struct {
	sign  string
	notes []int
}

// own reports whether the feature is native to the dialect.
func (m matrixMark) own() bool { return m.sign != "" && m.sign[0] != '*' }

func newMatrixDoc() *matrixDoc {
	return &matrixDoc{cells: map[string]matrixMark{}, numbers: map[string]int{}}
}

func key(feature, kind string, in, out dialect.Codec) string {
	return feature + "|" + kind + "|" + string(in.Dialect()) + "|" + string(out.Dialect())
}

func (d *matrixDoc) add(feature, kind string, in, out dialect.Codec, res cellResult) {
	if len(d.features) == 0 || d.features[len(d.features)-1] != feature {
		d.features = append(d.features, feature)
	}
	var cell matrixMark
	switch {
	case res.identical && len(diffFacts(res.before, res.after)) == 0:
		cell.sign = "="
	case len(diffFacts(res.before, res.after)) == 0:
		cell.sign = "✓"
	default:
		cell.sign = "✗"
	}
	if res.borrowed {
		cell.sign = "*" + cell.sign
	}
	for _, l := range res.report.Losses {
		if n := d.note(l); !slices.Contains(cell.notes, n) {
			cell.notes = append(cell.notes, n)
		}
	}
	d.cells[key(feature, kind, in, out)] = cell
}

func (d *matrixDoc) note(l dragoman.Loss) int {
	text := fmt.Sprintf("%s (%s): %s", l.Kind, l.Severity, l.Detail)
	if strings.HasSuffix(l.Detail, "has no such field") {
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
	dialectname.OpenAIChat: "Chat", dialectname.OpenAIResponses: "Responses", dialectname.Anthropic: "Anthropic",
	dialectname.Gemini: "Gemini", dialectname.Ollama: "Ollama", dialectname.Bedrock: "Bedrock", "cohere.chat": "Cohere",
}

func (d *matrixDoc) String() string {
	var b strings.Builder
	b.WriteString(`# What converts between dialects

This page shows which features of requests, responses and streams survive a conversion from one dialect into another, and what is reported
if they do not. [At a glance](#at-a-glance) has the sums; the tables after it have one row for each feature.

A test converts each feature into each dialect and reads it again. It writes this page (` + "`go test ./dialect/internal/matrix -run TestMatrix -update`" + `),
so do not edit it. The JSON of each feature is in ` + "`dialect/internal/matrix/testdata`" + `.

| sign | meaning |
|---|---|
| ` + "`=`" + ` | the same bytes |
| ` + "`✓`" + ` | the same meaning |
| ` + "`✗`" + ` | something is lost, and the report says what |
| ` + "`*`" + ` | the source dialect does not have the feature: it was converted from another dialect first |
| numbers | [reported losses](#reported-losses). The row "every feature" has those that all features share |

The model is not compared if a dialect has it in the URL.

| feature | meaning |
|---|---|
| text | a text message, or a text response |
| one call, parallel calls, no argument call | tool calls: one, several in a turn, one without arguments |
| freeform | a tool that takes plain text instead of JSON |
| namespaced | a tool in a namespace |
| deferred | a tool that the model sees only after a tool search |
| error result | a tool result with the error flag |
| image result | a tool result with an image |
| reasoning | reasoning of the model, with its signature if there is one |
| structured output | an output schema |
| refusal | a response that refuses |
| hosted tool | a tool that the vendor runs, such as web search, and its result |

## At a glance

How many native features are converted without loss, from the dialect of the row into the dialect of the column.
`)
	kinds := []string{"request", "response", "stream"}
	for _, kind := range kinds {
		b.WriteString(d.header(title(kind) + ": from"))
		for _, in := range crosstest.Codecs {
			fmt.Fprintf(&b, "| %s |", short[in.Dialect()])
			for _, out := range crosstest.Codecs {
				b.WriteString(" " + d.tally(kind, in, out) + " |")
			}
			b.WriteString("\n")
		}
	}
	for _, kind := range kinds {
		for _, in := range crosstest.Codecs {
			fmt.Fprintf(&b, "\n## %s from %s\n", title(kind), short[in.Dialect()])
			d.table(&b, kind, in)
		}
	}
	b.WriteString("\n## Reported losses\n\n")
	for i, n := range d.notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, n)
	}
	return b.String()
}

func title(kind string) string { return strings.ToUpper(kind[:1]) + kind[1:] }

// header returns the header of a table with a column for each dialect.
func (d *matrixDoc) header(first string) string {
	row := "\n| " + first + " |"
	for _, out := range crosstest.Codecs {
		row += " " + short[out.Dialect()] + " |"
	}
	return row + "\n|---|" + strings.Repeat("---|", len(crosstest.Codecs)) + "\n"
}

// tally counts the lossless cells between two dialects, among the features of the first.
func (d *matrixDoc) tally(kind string, in, out dialect.Codec) string {
	kept, all := 0, 0
	for _, f := range d.features {
		if cell := d.cells[key(f, kind, in, out)]; cell.own() {
			all++
			if cell.sign != "✗" {
				kept++
			}
		}
	}
	return fmt.Sprintf("%d of %d", kept, all)
}

// table writes what happens to each feature of one dialect in all dialects.
func (d *matrixDoc) table(b *strings.Builder, kind string, in dialect.Codec) {
	b.WriteString(d.header("to"))
	common := make([][]int, len(crosstest.Codecs))
	b.WriteString("| every feature |")
	for i, out := range crosstest.Codecs {
		common[i] = d.common(kind, in, out)
		b.WriteString(" " + noteList(common[i]) + " |")
	}
	b.WriteString("\n")
	for _, f := range d.features {
		if d.cells[key(f, kind, in, in)].sign == "" {
			continue
		}
		fmt.Fprintf(b, "| %s |", strings.ReplaceAll(f[3:], "-", " "))
		for i, out := range crosstest.Codecs {
			cell := d.cells[key(f, kind, in, out)]
			notes := slices.DeleteFunc(slices.Clone(cell.notes), func(n int) bool { return cell.own() && slices.Contains(common[i], n) })
			b.WriteString(" " + strings.TrimSpace(cell.sign+" "+noteList(notes)) + " |")
		}
		b.WriteString("\n")
	}
}

// common returns the notes that all native features of a dialect share between two dialects.
func (d *matrixDoc) common(kind string, in, out dialect.Codec) []int {
	var common []int
	first := true
	for _, f := range d.features {
		cell := d.cells[key(f, kind, in, out)]
		if !cell.own() {
			continue
		}
		if first {
			common, first = slices.Clone(cell.notes), false
			continue
		}
		common = slices.DeleteFunc(common, func(n int) bool { return !slices.Contains(cell.notes, n) })
	}
	return common
}

func noteList(notes []int) string {
	texts := make([]string, len(notes))
	for i, n := range notes {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, ", ")
}
