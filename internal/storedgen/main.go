// Storedgen writes the code that stores, loads and fingerprints the canonical
// types: json_generated.go of the root package. It reads nothing but the
// definitions of the structs. Run it with
//
//	go generate .
//
// in the root of the module. A test fails when the file is not up to date.
//
// # How to add a field
//
// Add one line to the struct, at the place where the member stands in the
// stored JSON, and run go generate:
//
//	Mood string `json:"mood,omitzero" hash:"ifset"`
//
// Then set the field in the golden value of json_golden_test.go; a test asks for
// it.
//
// The tags say how the field is stored and fingerprinted:
//
//   - json:"name,omitzero" stores the field under a name, unless it is zero.
//     Without omitzero it is always stored. json:"-" neither stores nor
//     fingerprints it. Members stand in the order of the struct.
//   - stored:"if=method" stores the field if the method of the struct, which
//     takes nothing and returns a bool, returns true.
//   - hash:"ifset" adds the name and the value to the fingerprint unless the
//     value is zero. This is the form for a new field: sessions hold
//     fingerprints, and those of values without the field stay the same.
//   - hash:"-" leaves the field out of the fingerprint. It is for what no wire
//     can show.
//   - Without a hash tag the value is always part of the fingerprint, in the
//     order of the struct. hash:"after=Field" puts it behind another field.
//   - hash:"nil" makes an empty list differ from a nil one.
//   - hash:"if=method" adds the value only if the method returns true.
//
// Options of one tag are separated by commas.
//
// # How to add a type
//
// A comment above the struct says that it is stored, and names it in errors:
//
//	//stored:value tool reference
//
// A value that is stored by itself has stored:top instead, and carries a
// version. Parts and events need no such comment: they are the structs with
// the methods sealedPart and sealedEvent. A name must have the same type in all
// parts, and in all events, because "type" may come after the other members.
//
// A type of field that the generator does not know needs three functions by
// hand and a line in the table of specials.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// output is the file that is written, below the root of the module.
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
