package interop

import (
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Writer is what the Write methods of a [Registry] append to: a buffer of JSON,
// Buf, into which they place their own commas. The zero value is ready. It is
// for who writes a dialect; everybody else has ConvertSchemas and its kin.
type Writer = jsonwire.Writer

// Path is the place of an object in the document it stands in, for losses:
// Path{Prefix: "/messages/3", Index: -1} is that pointer itself, and an Index
// of 0 or more is an element of it.
type Path = extra.Path
