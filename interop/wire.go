package interop

import (
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Writer is what the Write methods of a [Registry] append to: a buffer of JSON,
// Buf, into which they place their own commas. The zero value is ready. It is
// for who writes a dialect; everybody else has ConvertSchemas and its kin.
//
// Around them, BeginObject and EndObject, BeginArray and EndArray, and Key
// write the frame; String, Int, Bool, Null and Raw write a value; StringField
// and its kin write a member. Err is the first thing that was no JSON:
//
//	var w interop.Writer
//	w.BeginObject()
//	w.StringField("model", req.Model)
//	w.Key("tools")
//	w.BeginArray()
//	n, err := reg.WriteTools(&w, req.Tools, &report)
//	w.EndArray()
//	w.EndObject()
//	// send w.Buf
type Writer = jsonwire.Writer

// Path is the place of an object in the document it stands in, for losses.
// [At] makes one; its method Elem goes on to an element of a member. Its String
// is a JSON pointer.
type Path = extra.Path

// At is the path that a JSON pointer says; the empty one is the document.
func At(pointer string) Path { return extra.At(pointer) }
