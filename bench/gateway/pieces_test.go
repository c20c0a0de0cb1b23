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

// TestTranslatedBursts measures the CPU of streams that are translated, where that is seen
// best.
func TestTranslatedBursts(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	up := start(t, "upstream", "")
	gate, proxy := start(t, "gateway", up.URL), start(t, "proxy", up.URL)
	for _, w := range []way{chatToAnthropic, anthropicToChat} {
		took := measure(t, []contender{gatewayContender(gate.URL, gate.PID, w, burst), proxyContender(proxy.URL, proxy.PID, w, burst)})
		t.Logf("%s: %v, a reverse proxy %v: %.2f", w, took[0], took[1], float64(took[0])/float64(took[1]))
	}
}
