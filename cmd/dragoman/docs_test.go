package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// The JSON of reports is a contract, so docs/command.md describes each field.
func TestReportFieldsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{converted{}, loss{}, lintReport{}, verdict{}, listedFault{}, sessionReport{}, shownMessage{}} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name == "" || !strings.Contains(string(page), "\n| `"+name+"` | ") {
				t.Errorf("%s: no line for %q", typ, name)
			}
		}
	}
}
