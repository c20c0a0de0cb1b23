package main

import (
	"reflect"
	"strings"
	"unicode"

	dragoman "github.com/dragoman-go/dragoman"
)

// target is what a command writes for: what is known of the model by its name,
// and what the command line says about it.
func (l language) target(model string, set []string) (dragoman.Target, error) {
	var t dragoman.Target
	if l.models != nil {
		t.Caps = l.models(model)
	}
	for _, s := range set {
		if err := setCapability(&t.Caps, s); err != nil {
			return t, err
		}
	}
	return t, nil
}

// setCapability sets a capability by its name, or by name=value.
func setCapability(caps *dragoman.Capabilities, s string) error {
	name, value, valued := strings.Cut(s, "=")
	v := reflect.ValueOf(caps).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if kebab(v.Type().Field(i).Name) != name {
			continue
		}
		switch {
		case f.Kind() == reflect.Bool && (!valued || value == "true" || value == "false"):
			f.SetBool(value != "false")
			return nil
		case f.Kind() == reflect.Bool:
			return misused("--capability %s is true or false, not %q", name, value)
		case f.Type() == reflect.TypeFor[dragoman.ForcedChoice]() && value != string(dragoman.ForcedWithoutThinking) && value != string(dragoman.ForcedNever):
			return misused("--capability %s is %s or %s", name, dragoman.ForcedWithoutThinking, dragoman.ForcedNever)
		case f.Kind() == reflect.String && valued:
			f.SetString(value)
			return nil
		case f.Kind() == reflect.String:
			return misused("--capability %s needs a value: %s=…", name, name)
		}
	}
	return misused("--capability %q is none of %s", name, strings.Join(capabilityNames(), ", "))
}

// capabilityNames lists the capabilities that can be set by hand.
func capabilityNames() []string {
	var names []string
	for f := range reflect.TypeFor[dragoman.Capabilities]().Fields() {
		switch f.Type.Kind() {
		case reflect.Bool, reflect.String:
			names = append(names, kebab(f.Name))
		}
	}
	return names
}

// kebab writes a Go name as flags are: NoCallIDs is no-call-ids.
func kebab(name string) string {
	var b strings.Builder
	runes := []rune(strings.ReplaceAll(name, "IDs", "Ids"))
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// helpCapabilities lists the capabilities for help texts, in lines.
func helpCapabilities() string {
	var b strings.Builder
	width := 80
	for i, name := range capabilityNames() {
		if i > 0 {
			b.WriteByte(',')
		}
		if width+len(name)+2 > 80 {
			b.WriteString("\n ")
			width = 2
		}
		b.WriteString(" " + name)
		width += len(name) + 2
	}
	return b.String()
}
