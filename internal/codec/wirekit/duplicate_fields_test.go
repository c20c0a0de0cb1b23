package wirekit

import "testing"

func TestDuplicateFieldIsFoundInAnyCase(t *testing.T) {
	known := []string{"name", "arguments", "task"}
	for _, tc := range []struct {
		keys []string
		want bool // of the last key
	}{
		{[]string{"name"}, false},
		{[]string{"name", "arguments", "task"}, false},
		{[]string{"name", "arguments", "name"}, true},
		{[]string{"Name"}, true},
		{[]string{"name", "NAME"}, true},
		{[]string{"argument\u017f"}, true}, // folds to an s
		{[]string{"tas\u212a"}, true},      // the sign for kelvin folds to a k
		{[]string{"other", "other", "Other"}, false},
		{[]string{"names", "Names", "", ""}, false},
		{[]string{"navn", "nøme"}, false},
	} {
		var m KnownFields
		got := false
		for _, key := range tc.keys {
			got = m.IsRepeated(known, []byte(key))
		}
		if got != tc.want {
			t.Errorf("%q: %v", tc.keys, got)
		}
	}
}
