// Package models holds facts about models as data: what each accepts, what it
// refuses, its limits, and its price. The library, the gateway and the command
// line read the same table, so they treat the same name in the same way.
//
//	m, ok := models.Default().Lookup("openai", "gpt-4.1-2025-04-14")
//	caps := m.Capabilities(dragoman.OpenAIChat) // NoThinking is set
//	if m.Price != nil { … }                     // nil means unknown, not free
//
// The table is part of the program and is parsed on first use. It has a date
// ([Catalog.AsOf], [Catalog.PricesOn]). [Catalog.With] adds or changes entries
// from a file.
//
// A missing fact is unknown, never "no": a nil Price is not a price of zero.
package models
