package shell

import "testing"

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(`git log --oneline -n 20 | grep -v "fixup!" > /tmp/out.txt && echo "$(date)"`); err != nil {
			b.Fatal(err)
		}
	}
}
