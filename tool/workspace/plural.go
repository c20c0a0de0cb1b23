package workspace

import "fmt"

// counted returns a number and its noun, plural unless the number is 1.
func counted[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
