package jsonwire_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

func TestCamel(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "text": "text", "functionCall": "functionCall", "function_call": "functionCall", "allowed_function_names": "allowedFunctionNames",
		"_private": "_private", "a__b": "aB", "a_": "a", "a_1": "a1", "é_b": "éB", "$ref": "$ref",
	} {
		if got := string(jsonwire.Camel([]byte(in))); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
