package main

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// The JSON of reports is a contract, so docs/command.md describes each field.
func TestReportFieldsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{converted{}, loss{}, lintReport{}, verdict{}, listedFault{}, sessionReport{}, shownMessage{}, listedServer{}, shownServer{}, acceptedServer{}, testedServer{}, doctorStep{}} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name == "" || !strings.Contains(string(page), "\n| `"+name+"` | ") {
				t.Errorf("%s: no line for %q", typ, name)
			}
		}
	}
}

// docs/command.md describes each command, and each flag with its default.
func TestEveryCommandAndFlagIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, top := range newRoot(nil).Commands() {
		_, section, ok := strings.Cut(string(data), "\n## "+top.Name()+"\n")
		if !ok {
			t.Errorf("no section for %s", top.CommandPath())
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		rows := map[string][]string{} // cells by flag
		for line := range strings.Lines(section) {
			if m := flagRow.FindStringSubmatch(line); m != nil {
				rows[m[1]] = strings.Split(line, " | ")
			}
		}
		flags := map[string]bool{}
		for _, cmd := range append(top.Commands(), top) {
			if !cmd.Runnable() {
				continue
			}
			if !strings.Contains(section, cmd.CommandPath()) {
				t.Errorf("%s is not described", cmd.CommandPath())
			}
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				flags[f.Name] = true
				switch cells := rows[f.Name]; {
				case cells == nil:
					t.Errorf("%s --%s has no row", cmd.CommandPath(), f.Name)
				case f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "0s" && f.DefValue != "0" && cells[1] != "`"+f.DefValue+"`":
					t.Errorf("%s --%s: the default is %s, the page has %s", cmd.CommandPath(), f.Name, f.DefValue, cells[1])
				}
			})
		}
		for name := range rows {
			if !flags[name] {
				t.Errorf("%s has no flag --%s", top.CommandPath(), name)
			}
		}
	}
}

var flagRow = regexp.MustCompile("^\\| `--([a-z-]+)[ `]")
