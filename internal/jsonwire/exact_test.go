package jsonwire_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

func TestQuirkB31_Inexact(t *testing.T) {
	for doc, want := range map[string]string{
		`{"a":[1,{"n":9007199254740993}]}`:          "9007199254740993",
		`{"a":-9007199254740993 }`:                  "-9007199254740993",
		`{"a":9007199254740992}`:                    "", // 2^53 is a double
		`{"a":1152921504606846976}`:                 "", // 2^60 as well
		`{"a":9007199254740993.5,"b":1e400}`:        "",
		`{"9007199254740993":"\"9007199254740993"}`: "",
		`123456789012345678901234567890`:            "123456789012345678901234567890",
		`{"a":`:                                     "",
		`"\`:                                        "",
		`{"a":-`:                                    "",
	} {
		if got := string(jsonwire.Inexact([]byte(doc))); got != want {
			t.Errorf("%s: got %q, want %q", doc, got, want)
		}
	}
}
