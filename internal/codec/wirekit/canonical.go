package wirekit

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/go-json-experiment/json/jsontext"
)

// Canonical is a field of [dragoman.Request], for use in the settings tables of
// dialects. All dialects read and write a plain field, such as a text or a number, in
// the same way. A line of a table needs its own functions only where its API differs.
type Canonical struct {
	path string
	// kind is the JSON type of a value; 0 means an object.
	kind jsontext.Kind
	// set reports whether the request has a value.
	set func(req *dragoman.Request) bool
	// asks reports whether a target without the field loses something. If nil, set
	// decides.
	asks func(req *dragoman.Request) bool
	// read reads the value. It returns JSON to store in the extras of the request,
	// instead of or in addition to the value.
	read func(r *jsonwire.Reader, req *dragoman.Request) (keep []byte)
	// write writes a value that is set.
	write func(w *jsonwire.Writer, req *dragoman.Request, rep *dragoman.Report)
	// sampler: a model that takes no sampling parameters does not take the field.
	sampler bool
}

// The canonical fields of a request.
var (
	Model        = text("/model", func(r *dragoman.Request) *string { return &r.Model })
	Instructions = object("/instructions", func(r *dragoman.Request) bool { return len(r.Instructions) > 0 })
	Messages     = object("/messages", func(r *dragoman.Request) bool { return len(r.Messages) > 0 })
	Tools        = object("/tools", func(r *dragoman.Request) bool { return len(r.Tools) > 0 })
	ToolChoice   = object("/tool_choice", func(r *dragoman.Request) bool { return r.ToolChoice != nil })
	Output       = object("/output", func(r *dragoman.Request) bool { return r.Output != nil })
	Reasoning    = object("/reasoning", func(r *dragoman.Request) bool { return r.Reasoning != nil })
	Effort       = &Canonical{path: "/reasoning/effort", kind: '"', set: func(r *dragoman.Request) bool { return r.Reasoning != nil && r.Reasoning.Effort != "" }}
	Cache        = object("/cache", func(r *dragoman.Request) bool { return r.Cache != nil })

	ParallelToolCalls  = flag("/parallel_tool_calls", func(r *dragoman.Request) **bool { return &r.ParallelToolCalls })
	MaxOutputTokens    = integer("/max_output_tokens", func(r *dragoman.Request) **int64 { return &r.MaxOutputTokens })
	CacheKey           = text("/cache_key", func(r *dragoman.Request) *string { return &r.CacheKey })
	User               = text("/user", func(r *dragoman.Request) *string { return &r.User })
	ServiceTier        = text("/service_tier", func(r *dragoman.Request) *string { return &r.ServiceTier })
	Verbosity          = text("/verbosity", func(r *dragoman.Request) *string { return &r.Verbosity })
	PreviousResponseID = text("/previous_response_id", func(r *dragoman.Request) *string { return &r.PreviousResponseID })

	Temperature      = number("/sampling/temperature", func(r *dragoman.Request) **dragoman.Number { return &r.Sampling.Temperature })
	TopP             = number("/sampling/top_p", func(r *dragoman.Request) **dragoman.Number { return &r.Sampling.TopP })
	FrequencyPenalty = number("/sampling/frequency_penalty", func(r *dragoman.Request) **dragoman.Number { return &r.Sampling.FrequencyPenalty })
	PresencePenalty  = number("/sampling/presence_penalty", func(r *dragoman.Request) **dragoman.Number { return &r.Sampling.PresencePenalty })

	TopK       = topK()
	Seed       = seed()
	Candidates = candidates()
	Stop       = texts("/sampling/stop", func(r *dragoman.Request) *[]string { return &r.Sampling.Stop })

	Store       = store()
	Metadata    = metadata()
	Stream      = streams()
	StreamUsage = object("/stream_usage", func(r *dragoman.Request) bool { return r.StreamUsage })
)

// object returns a field that every dialect reads and writes in its own way.
func object(path string, set func(*dragoman.Request) bool) *Canonical {
	return &Canonical{path: path, set: set}
}

func text(path string, at func(*dragoman.Request) *string) *Canonical {
	return &Canonical{
		path: path, kind: '"',
		set: func(req *dragoman.Request) bool { return *at(req) != "" },
		read: func(r *jsonwire.Reader, req *dragoman.Request) []byte {
			*at(req) = r.String()
			return nil
		},
		write: func(w *jsonwire.Writer, req *dragoman.Request, _ *dragoman.Report) { w.String(*at(req)) },
	}
}

func integer(path string, at func(*dragoman.Request) **int64) *Canonical {
	return &Canonical{
		path: path,
		set:  func(req *dragoman.Request) bool { return *at(req) != nil },
		read: func(r *jsonwire.Reader, req *dragoman.Request) []byte {
			*at(req) = new(r.Integer())
			return nil
		},
		write: func(w *jsonwire.Writer, req *dragoman.Request, _ *dragoman.Report) { w.Int(**at(req)) },
	}
}

func flag(path string, at func(*dragoman.Request) **bool) *Canonical {
	return &Canonical{
		path: path,
		set:  func(req *dragoman.Request) bool { return *at(req) != nil },
		read: func(r *jsonwire.Reader, req *dragoman.Request) []byte {
			*at(req) = new(r.Bool())
			return nil
		},
		write: func(w *jsonwire.Writer, req *dragoman.Request, _ *dragoman.Report) { w.Bool(**at(req)) },
	}
}

// number returns a sampling parameter that keeps its original spelling.
func number(path string, at func(*dragoman.Request) **dragoman.Number) *Canonical {
	return &Canonical{
		path: path, sampler: true,
		set: func(req *dragoman.Request) bool { return *at(req) != nil },
		read: func(r *jsonwire.Reader, req *dragoman.Request) []byte {
			*at(req) = new(dragoman.Number(r.Number()))
			return nil
		},
		write: func(w *jsonwire.Writer, req *dragoman.Request, _ *dragoman.Report) { w.Raw([]byte(**at(req))) },
	}
}

// texts returns a list of texts; an empty list is stored in the extras.
func texts(path string, at func(*dragoman.Request) *[]string) *Canonical {
	return &Canonical{
		path: path,
		set:  func(req *dragoman.Request) bool { return len(*at(req)) > 0 },
		read: func(r *jsonwire.Reader, req *dragoman.Request) []byte {
			list := at(req)
			for range r.Array() {
				*list = append(*list, r.String())
			}
			if len(*list) == 0 {
				return []byte("[]")
			}
			return nil
		},
		write: func(w *jsonwire.Writer, req *dragoman.Request, _ *dragoman.Report) { WriteTexts(w, *at(req)) },
	}
}

// WriteTexts writes a list of texts.
func WriteTexts(w *jsonwire.Writer, list []string) {
	w.BeginArray()
	for _, v := range list {
		w.String(v)
	}
	w.EndArray()
}

func topK() *Canonical {
	c := integer("/sampling/top_k", func(r *dragoman.Request) **int64 { return &r.Sampling.TopK })
	c.sampler = true
	return c
}

// seed returns an integer field. Some servers take seeds of more than 64 bits; their
// bytes are stored in the extras.
func seed() *Canonical {
	c := integer("/sampling/seed", func(r *dragoman.Request) **int64 { return &r.Sampling.Seed })
	c.read = func(r *jsonwire.Reader, req *dragoman.Request) []byte {
		if req.Sampling.Seed = readSeed(r); req.Sampling.Seed == nil {
			return r.Raw()
		}
		return nil
	}
	return c
}

// readSeed reads a seed. It returns nil, and consumes nothing, if the seed has more
// than 64 bits.
func readSeed(r *jsonwire.Reader) *int64 {
	if r.Kind() == '0' {
		probe := jsonwire.NewReader(r.Rest())
		if probe.Integer(); probe.Err() != nil {
			return nil
		}
	}
	return new(r.Integer())
}

// candidates returns an integer field. The value 1 is not a loss for a target that always
// returns one candidate.
func candidates() *Canonical {
	c := integer("/sampling/candidates", func(r *dragoman.Request) **int64 { return &r.Sampling.Candidates })
	c.asks = func(req *dragoman.Request) bool {
		return req.Sampling.Candidates != nil && *req.Sampling.Candidates != 1
	}
	return c
}

// store returns a flag. The value false is not a loss for a target that stores nothing.
func store() *Canonical {
	c := flag("/store", func(r *dragoman.Request) **bool { return &r.Store })
	c.asks = func(req *dragoman.Request) bool { return req.Store != nil && *req.Store }
	return c
}

// streams returns a flag that is written only if it is true; an explicit false is
// stored in the extras.
func streams() *Canonical {
	return &Canonical{
		path: "/stream",
		set:  func(req *dragoman.Request) bool { return req.Stream },
		read: func(r *jsonwire.Reader, req *dragoman.Request) []byte {
			if req.Stream = r.Bool(); !req.Stream {
				return []byte("false")
			}
			return nil
		},
		write: func(w *jsonwire.Writer, _ *dragoman.Request, _ *dragoman.Report) { w.Bool(true) },
	}
}

// metadata returns an object of strings. Any other value, and an empty object, is
// stored in the extras.
func metadata() *Canonical {
	return &Canonical{
		path: "/metadata",
		set:  func(req *dragoman.Request) bool { return len(req.Metadata) > 0 },
		read: func(r *jsonwire.Reader, req *dragoman.Request) []byte {
			raw := r.Raw()
			if r.Err() != nil {
				return nil
			}
			if req.Metadata = readMetadata(raw); req.Metadata == nil {
				return raw
			}
			return nil
		},
		write: func(w *jsonwire.Writer, req *dragoman.Request, rep *dragoman.Report) {
			WriteMetadata(w, req.Metadata, rep)
		},
	}
}

// readMetadata reads an object of strings. It returns nil for any other value and for
// an empty object.
func readMetadata(raw []byte) (list []dragoman.KeyValue) {
	r := jsonwire.NewReader(raw)
	if !bytes.HasPrefix(raw, []byte("{")) {
		return nil
	}
	for key := range r.Object() {
		k := string(key)
		if r.Kind() != '"' {
			return nil
		}
		list = append(list, dragoman.KeyValue{Key: k, Value: r.String()})
	}
	return list
}
