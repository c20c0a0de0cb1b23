// Storedgen generates json_generated.go of the root package: the code that
// stores, loads and fingerprints the canonical types. Its only input is the
// source of that package. Run it in the root of the module:
//
//	go generate .
//
// A test fails if the file is not up to date.
//
// # How to add a field
//
// Add one line to the struct, at the place that the field has in the stored
// JSON, and run go generate:
//
//	Mood string `json:"mood,omitzero" hash:"ifset"`
//
// Then set the field in the golden value of json_golden_test.go; a test fails
// until you do.
//
// The tags control how the field is stored and fingerprinted:
//
//   - json:"name,omitzero" stores the field under a name, unless it is zero.
//     Without omitzero it is always stored. json:"-" neither stores nor
//     fingerprints it. Fields are stored in the order of the struct.
//   - stored:"if=method" stores the field if this method of the struct, a
//     func() bool, returns true.
//   - hash:"ifset" adds the name and the value to the fingerprint unless the
//     value is zero. Use it for new fields: sessions store fingerprints, and
//     those of values without the field must not change.
//   - hash:"-" leaves the field out of the fingerprint. Use it for fields that
//     no dialect sends.
//   - Without a hash tag the value is always part of the fingerprint, in the
//     order of the struct. hash:"after=Field" puts it after another field.
//   - hash:"nil" makes an empty list differ from a nil one.
//   - hash:"if=method" adds the value only if the method returns true.
//
// Options of one tag are separated by commas.
//
// # How to add a type
//
// A comment above a struct marks it as stored and gives its name in errors:
//
//	//stored:value tool reference
//
// Use stored:top for a value that is stored by itself; it gets a version. Parts
// and events need no comment: they are the structs with the methods sealedPart
// and sealedEvent. A field name must have the same type in all parts, and in all
// events, because "type" may follow the other fields in the JSON.
//
// For a field of a type that the generator does not support, write three
// functions by hand and add a line to the table of specials.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// output is the generated file, relative to the root of the module.
const output = "json_generated.go"

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "storedgen:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	code, err := generate(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, output), code, 0o644)
}
