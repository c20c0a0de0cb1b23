// Package dialects lists the dialects of this module. A new dialect is one more line in the
// list all; every other package finds it here.
package dialects

import (
	"slices"
	"strings"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
)

// all has the dialects in the order in which they are listed to users.
var all = []dialect.Codec{
	openaichat.Codec{},
	openairesponses.Codec{},
	anthropic.Codec{},
	gemini.Codec{},
	ollama.Codec{},
	bedrock.Codec{},
	cohere.Codec{},
}

// All returns the codecs of all dialects.
func All() []dialect.Codec { return slices.Clone(all) }

// Default returns the codec of the dialect that most servers use.
func Default() dialect.Codec { return all[0] }

// Named returns the codec of a dialect.
func Named(d dragoman.Dialect) (dialect.Codec, bool) {
	i := slices.IndexFunc(all, func(c dialect.Codec) bool { return c.Dialect() == d })
	if i < 0 {
		return nil, false
	}
	return all[i], true
}

// WireOf returns the descriptor of a dialect. A dialect from outside this module has an
// empty one.
func WireOf(d dragoman.Dialect) *wire.Wire {
	c, _ := Named(d)
	return wire.Of(c)
}

// Stateful returns the codec of the dialect whose servers store responses.
func Stateful() dialect.Codec {
	i := slices.IndexFunc(all, func(c dialect.Codec) bool { return wire.Of(c).State.Responses })
	return all[i]
}

// PublicHeaders returns the request headers of all dialects that contain no
// credentials: versions, and the lists of betas.
var PublicHeaders = sync.OnceValue(func() (names []string) {
	for _, c := range all {
		h := wire.Of(c).Headers
		names = append(names, h.Version)
		for _, name := range h.Forwarded {
			if strings.HasSuffix(name, "-Beta") {
				names = append(names, name)
			}
		}
	}
	return distinct(names)
})

// Keys returns the headers, besides Authorization, and the query parameters in which clients
// of all dialects send their keys.
var Keys = sync.OnceValues(func() (headers, parameters []string) {
	for _, c := range all {
		h := wire.Of(c).Headers
		headers, parameters = append(headers, h.Key), append(parameters, h.KeyParameter)
	}
	return distinct(headers), distinct(parameters)
})

// StorageURLs returns the prefixes of URLs in a vendor's own storage. Only that vendor
// can read them, even if they look public.
var StorageURLs = sync.OnceValue(func() (prefixes []string) {
	for _, c := range all {
		prefixes = append(prefixes, c.Limits().StorageURLs...)
	}
	return distinct(prefixes)
})

// distinct removes empty and repeated strings.
func distinct(list []string) []string {
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" })
}
