package interop

import (
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Writer is the JSON buffer that the Write methods of a [Registry] append to. It places commas
// itself. The zero value is ready to use. Only implementations of a dialect need it; other code
// uses ConvertSchemas, ConvertCalls and ConvertResults.
//
// BeginObject and EndObject, BeginArray and EndArray, and Key write the structure; String, Int,
// Bool, Null and Raw write a value; StringField and similar methods write a field. Buf holds
// the JSON; Err is the first error:
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

// Path is the position of an object in its document, for losses. [At] returns one; its method
// Elem returns the path of an element of a field. Its String is a JSON pointer.
type Path = extra.Path

// At returns the path for a JSON pointer; empty means the document.
func At(pointer string) Path { return extra.At(pointer) }
