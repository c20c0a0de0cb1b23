package configfile_test

import (
	"slices"
	"testing"

	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/targets"
)

func TestSetNumber(t *testing.T) {
	var caps targets.Capabilities
	if err := configfile.File.Set(&caps, "default_max_tokens", "64000", true); err != nil || caps.DefaultMaxTokens != 64000 {
		t.Errorf("%d, %v", caps.DefaultMaxTokens, err)
	}
	for _, value := range []string{"", "many", "-1", "1.5"} {
		if err := configfile.Flag.Set(&caps, "default-max-tokens", value, value != ""); err == nil {
			t.Errorf("%q is taken", value)
		}
	}
	if !slices.Contains(configfile.Flag.Names(), "default-max-tokens") {
		t.Error("the capability is not in Names")
	}
}
