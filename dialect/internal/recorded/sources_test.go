package recorded_test

import (
	"slices"

	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// sourceOf returns the wire format whose traffic is in a file.
func sourceOf(file string) traffic.Source {
	all := traffic.Sources()
	return all[slices.IndexFunc(all, func(s traffic.Source) bool { return s.File == file })]
}
