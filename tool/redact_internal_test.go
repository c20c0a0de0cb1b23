package tool

import (
	"strings"
	"testing"
)

// mayBegin must accept the first two bytes of every shape.
func TestT9_MayBeginCoversEveryKeyShape(t *testing.T) {
	for _, k := range &shapes {
		if !mayBegin(k.begins[0], k.begins[1]) {
			t.Errorf("%q is never found", k.begins)
		}
	}
}

// A text in which a key seems to begin again and again is read once.
func TestT9_RedactionIsLinear(t *testing.T) {
	const key = "ghp_0123456789012345678901234567890123"
	for _, unit := range []string{"sk-", "xoxb-", "SG.", "eyJ.", "AKIA-", "-----BEGIN ", "-----BEGIN X"} {
		text := strings.Repeat(unit, 1<<20/len(unit))
		var r *Redactor
		if got := r.Redact(text); got != text {
			t.Errorf("%q, again and again, is not a key", unit)
		}
		if got := r.Redact(text + " " + key + " x"); got != text+" "+mask+" x" {
			t.Errorf("a key after much %q was not taken out", unit)
		}
	}
	const block = "-----BEGIN PRIVATE KEY-----x-----END PRIVATE KEY-----"
	many := 1 << 20 / len(block)
	if got := (*Redactor)(nil).Redact(strings.Repeat(block, many)); got != strings.Repeat(mask, many) {
		t.Error("not every block of a private key was taken out")
	}
}

// Identifiers that begin like a key are ordinary text.
func TestT9_IdentifiersAreNotKeys(t *testing.T) {
	for _, text := range []string{
		"npm_package_devDependencies_typescript_eslint_parser=1",
		"npm_config_user_agent_and_other_long_settings",
		"from hf_transformers_pipeline_configuration import defaults",
	} {
		if got := (*Redactor)(nil).Redact(text); got != text {
			t.Errorf("%q is %q", text, got)
		}
	}
	for _, key := range []string{"npm_" + strings.Repeat("aB3d", 9), "hf_" + strings.Repeat("aBcD", 8) + "eF", "hf_" + strings.Repeat("aBcD", 8) + "_x"} {
		if got := (*Redactor)(nil).Redact("the key " + key + "."); strings.Contains(got, "aB") {
			t.Errorf("%q is %q", key, got)
		}
	}
}
