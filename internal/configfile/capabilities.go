package configfile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/targets"
)

// Style is the separator between the words of a name.
type Style string

// The styles.
const (
	Flag Style = "-"
	File Style = "_"
)

// forcedAlways is the value for a choice that may always be forced. Its stored form is
// the empty string.
const forcedAlways = "always"

// Set sets a capability. valued is false if no value was given, which means true for a
// boolean.
func (s Style) Set(caps *targets.Capabilities, name, value string, valued bool) error {
	v := reflect.ValueOf(caps).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if s.name(v.Type().Field(i).Name) != name {
			continue
		}
		forced := v.Type().Field(i).Name == "ForcedChoice"
		switch {
		case f.Kind() == reflect.Bool && (!valued || value == "true" || value == "false"):
			f.SetBool(value != "false")
			return nil
		case f.Kind() == reflect.Bool:
			return fmt.Errorf("%s is true or false, not %q", name, value)
		case forced && value == forcedAlways:
			f.SetString(codes.ForcedAlways)
			return nil
		case forced && value != codes.ForcedWithoutThinking && value != codes.ForcedNever:
			return fmt.Errorf("%s is %s, %s or %s", name, forcedAlways, codes.ForcedWithoutThinking, codes.ForcedNever)
		case f.Kind() == reflect.Int64:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 {
				return fmt.Errorf("%s is a number, not %q", name, value)
			}
			f.SetInt(n)
			return nil
		case f.Kind() == reflect.String && valued:
			if err := checkWords(v.Type().Field(i).Name, value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			f.SetString(value)
			return nil
		case f.Kind() == reflect.String:
			return fmt.Errorf("%s needs a value: %s=…", name, name)
		}
	}
	return fmt.Errorf("%q is not one of %s", name, strings.Join(s.Names(), ", "))
}

// checkWords checks the values of capabilities that are ranges or lists of known words.
func checkWords(field, value string) error {
	known := []string(nil)
	switch field {
	case "Refuses", "RefusesThinking":
		known = wirekit.Refusable()
	case "Efforts":
		known = wirekit.Efforts()
	case "RefusesMedia":
		known = []string{codes.MediaImage, codes.MediaAudio, codes.MediaVideo, codes.MediaFile}
	case "EffortField":
		known = []string{"reasoning_effort", "reasoningConfig"}
	case "Temperature":
		var least, most float64
		if n, err := fmt.Sscanf(value, "%g %g", &least, &most); value != "" && (err != nil || n != 2 || least > most) {
			return fmt.Errorf("want a range such as \"0 1.5\", have %q", value)
		}
	case "ReasoningOff":
		if value != "" && !strings.Contains(value, "=") {
			return fmt.Errorf("want field=value, have %q", value)
		}
	}
	for _, word := range strings.Fields(value) {
		if known != nil && !slices.Contains(known, word) {
			return fmt.Errorf("unknown value %q; known values are %s", word, strings.Join(known, ", "))
		}
	}
	return nil
}

// Names lists the capabilities that can be set by hand.
func (s Style) Names() []string {
	var names []string
	for f := range reflect.TypeFor[targets.Capabilities]().Fields() {
		switch f.Type.Kind() {
		case reflect.Bool, reflect.String, reflect.Int64:
			names = append(names, s.name(f.Name))
		}
	}
	return names
}

// name returns the name of a field: NoCallIDs is no-call-ids.
func (s Style) name(field string) string {
	var b strings.Builder
	runes := []rune(strings.ReplaceAll(field, "IDs", "Ids"))
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteString(string(s))
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// ApplyCapabilities sets capabilities by their names in a file, in the order of the names.
func ApplyCapabilities(caps *targets.Capabilities, set map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if err := File.Set(caps, name, set[name], true); err != nil {
			return err
		}
	}
	return nil
}

// ReadCapabilities reads capabilities from a config file.
func ReadCapabilities(r *Reader, n *Node) map[string]string {
	out := map[string]string{}
	r.Each(n, "capabilities", func(key, value *Node) {
		if value.Kind != Bool && value.Kind != String && value.Kind != Number {
			r.Bad(value, "capabilities: %s: want true, false, a number or a text, have %s", key.Text, value.Kind)
			return
		}
		if err := File.Set(&targets.Capabilities{}, key.Text, value.Text, true); err != nil {
			r.Bad(key, "capabilities: %v%s", err, textkit.Suggest(key.Text, File.Names()))
		}
		out[key.Text] = value.Text
	})
	return out
}
