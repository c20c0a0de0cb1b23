package sim_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/sim"
)

func TestReferencesToStoredItemsAreRefused(t *testing.T) {
	server := httptest.NewServer(sim.Handler(sim.Config{}))
	defer server.Close()
	for body, id := range map[string]string{
		`{"model":"sim/echo","input":[{"role":"user","content":"q"},{"type":"item_reference","id":"fc_1"}]}`: "fc_1",
		`{"model":"sim/echo","input":[{"id":"msg_1"}]}`:                                                      "msg_1",
		`{"model":"sim/echo","input":"q","conversation":"conv_1"}`:                                           "conv_1",
	} {
		resp, err := http.Post(server.URL+"/v1/responses", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound || !strings.Contains(string(text), id) || strings.Contains(string(text), "model_not_found") {
			t.Errorf("%s: %d %s", body, resp.StatusCode, text)
		}
	}
}
