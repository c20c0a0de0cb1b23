package provider_test

import (
	"errors"
	"testing"

	"github.com/dragoman-go/dragoman/provider"
)

// Any config file is parsed, or every error has a line. A parsed config opens or returns an error.
func FuzzParseConfig(f *testing.F) {
	for _, seed := range []string{
		"version: 1\nproviders:\n  w: {type: compatible, base_url: \"http://u:p@h:1/v1?q=1\", api_key_env: [A, B], headers: {x-a: b}}\naliases: {a: w/x, b: [a, openai/y]}",
		"version: 1\nproviders:\n  o:\n    type: openai-chat\n    models: {s: {name: m, capabilities: {no_images: true}}}\n    timeouts: {idle: 3s, total: none}\n    retries: 0",
		`{"version":1,"providers":{"b":{"type":"bedrock","region":"eu-1"},"v":{"type":"vertex","project":"p","location":"l"}},"aliases":{"x":"x"}}`,
		"version: 1\nproviders: &a {x: *a}\n", "version: 1\n<<: {a: b}", "? [a, b]\n: c", "- - - - -", "version: 1\naliases:\n  a: |\n    b\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := provider.Parse("f", data)
		if err != nil {
			var bad *provider.FileError
			if !errors.As(err, &bad) || bad.Line < 1 || bad.Column < 1 || bad.Reason == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		c.Getenv = func(string) string { return "" }
		for alias := range c.Aliases {
			if _, err := c.Open(alias); err != nil {
				var setting *provider.SettingError
				if !badSpec(err) && !errors.As(err, &setting) {
					t.Fatalf("%s: %v", alias, err)
				}
			}
		}
		for name := range c.Providers {
			_, _ = c.Open(name + "/a model: 1%/../x")
		}
	})
}
