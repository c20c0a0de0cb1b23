package dialect_test

import (
	"slices"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

func TestLimitsNameSchemaSubsetsThatExist(t *testing.T) {
	for _, c := range crosstest.Codecs {
		l := c.Limits()
		tool, ok := all.Profile(l.ToolSchema)
		if !ok || tool.Strict() {
			t.Errorf("%s: tools follow %q, which is not a subset for non-strict tools", c.Dialect(), l.ToolSchema)
		}
		strict, ok := all.Profile(l.StrictSchema)
		if l.StrictSchema != "" && (!ok || !strict.Strict()) {
			t.Errorf("%s: strict tools follow %q, which is not a strict subset", c.Dialect(), l.StrictSchema)
		}
		if l.ResultMedia != slices.Contains(l.MediaRoles, dragoman.RoleTool) {
			t.Errorf("%s: results carry media: %v, but the roles that do are %v", c.Dialect(), l.ResultMedia, l.MediaRoles)
		}
	}
	if _, ok := all.Profile("unknown"); ok {
		t.Error("an unknown name has a profile")
	}
}
