//go:build linux

package gateway

import (
	"strings"
	"testing"
)

// TestTranslation measures the translation alone, and fails where TestGateway would.
func TestTranslation(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	var rows strings.Builder
	againstBifrost(t, &rows)
	t.Log("\n" + rows.String())
}
