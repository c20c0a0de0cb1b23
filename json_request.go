package dragoman

import (
	"encoding/json"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// MarshalJSON writes the request as stored JSON, with its version.
// Contributions are code and never stored.
func (r Request) MarshalJSON() ([]byte, error) {
	return store("request", func(out *storer) {
		out.top()
		r.members(out)
		out.w.EndObject()
	})
}

// UnmarshalJSON reads a stored request.
func (r *Request) UnmarshalJSON(b []byte) error { return loadTop(b, "request", r, loadRequest) }

func (r *Request) members(out *storer) {
	out.str("model", r.Model)
	storeList(out, "instructions", r.Instructions, storePart)
	storeList(out, "messages", r.Messages, (*Message).store)
	storeList(out, "tools", r.Tools, (*ToolSpec).store)
	storeOpt(out, "tool_choice", r.ToolChoice, (*ToolChoice).store)
	out.optBool("parallel_tool_calls", r.ParallelToolCalls)
	storeOpt(out, "output", r.Output, (*OutputFormat).store)
	storeOpt(out, "reasoning", r.Reasoning, (*ReasoningSettings).store)
	if !r.Sampling.zero() {
		out.w.Key("sampling")
		r.Sampling.store(out)
	}
	out.optNum("max_output_tokens", r.MaxOutputTokens)
	storeOpt(out, "cache", r.Cache, (*CacheHint).store)
	out.str("cache_key", r.CacheKey)
	storeList(out, "metadata", r.Metadata, (*KeyValue).store)
	out.str("user", r.User)
	out.str("service_tier", r.ServiceTier)
	out.str("verbosity", r.Verbosity)
	out.optBool("store", r.Store)
	out.str("previous_response_id", r.PreviousResponseID)
	out.flag("stream", r.Stream)
	out.flag("stream_usage", r.StreamUsage)
	storeOpt(out, "native", r.Native, (*Sidecar).store)
	storeOpt(out, "extra", r.Extra, (*Extra).store)
}

func loadRequest(r *jsonwire.Reader) (q Request) {
	for key := range r.Object() {
		switch string(key) {
		case "model":
			q.Model = r.String()
		case "instructions":
			q.Instructions = loadList(r, loadPart)
		case "messages":
			q.Messages = loadList(r, loadMessage)
		case "tools":
			q.Tools = loadList(r, loadToolSpec)
		case "tool_choice":
			q.ToolChoice = loadOpt(r, loadToolChoice)
		case "parallel_tool_calls":
			q.ParallelToolCalls = loadOpt(r, (*jsonwire.Reader).Bool)
		case "output":
			q.Output = loadOpt(r, loadOutputFormat)
		case "reasoning":
			q.Reasoning = loadOpt(r, loadReasoningSettings)
		case "sampling":
			q.Sampling = loadSampling(r)
		case "max_output_tokens":
			q.MaxOutputTokens = loadOpt(r, (*jsonwire.Reader).Int)
		case "cache":
			q.Cache = loadOpt(r, loadCacheHint)
		case "cache_key":
			q.CacheKey = r.String()
		case "metadata":
			q.Metadata = loadList(r, loadKeyValue)
		case "user":
			q.User = r.String()
		case "service_tier":
			q.ServiceTier = r.String()
		case "verbosity":
			q.Verbosity = r.String()
		case "store":
			q.Store = loadOpt(r, (*jsonwire.Reader).Bool)
		case "previous_response_id":
			q.PreviousResponseID = r.String()
		case "stream":
			q.Stream = r.Bool()
		case "stream_usage":
			q.StreamUsage = r.Bool()
		case "native":
			q.Native = loadOpt(r, loadSidecar)
		case "extra":
			q.Extra = loadOpt(r, loadExtra)
		default:
			r.Skip()
		}
	}
	return q
}

// MarshalJSON writes the entry.
func (kv KeyValue) MarshalJSON() ([]byte, error) { return store("metadata", kv.store) }

// UnmarshalJSON reads a stored entry.
func (kv *KeyValue) UnmarshalJSON(b []byte) error { return load(b, "metadata", kv, loadKeyValue) }

func (kv *KeyValue) store(out *storer) {
	out.w.BeginObject()
	out.str("key", kv.Key)
	out.str("value", kv.Value)
	out.w.EndObject()
}

func loadKeyValue(r *jsonwire.Reader) (kv KeyValue) {
	for key := range r.Object() {
		switch string(key) {
		case "key":
			kv.Key = r.String()
		case "value":
			kv.Value = r.String()
		default:
			r.Skip()
		}
	}
	return kv
}

// MarshalJSON writes the format, its schema exact.
func (f OutputFormat) MarshalJSON() ([]byte, error) { return store("output format", f.store) }

// UnmarshalJSON reads a stored format.
func (f *OutputFormat) UnmarshalJSON(b []byte) error {
	return load(b, "output format", f, loadOutputFormat)
}

func (f *OutputFormat) store(out *storer) {
	out.w.BeginObject()
	out.str("kind", string(f.Kind))
	out.str("name", f.Name)
	out.str("description", f.Description)
	out.bytes("schema", f.Schema)
	out.str("strict", string(f.Strict))
	out.str("dialect", string(f.Dialect))
	storeOpt(out, "extra", f.Extra, (*Extra).store)
	out.w.EndObject()
}

func loadOutputFormat(r *jsonwire.Reader) (f OutputFormat) {
	for key := range r.Object() {
		switch string(key) {
		case "kind":
			f.Kind = loadWord[OutputKind](r)
		case "name":
			f.Name = r.String()
		case "description":
			f.Description = r.String()
		case "schema":
			f.Schema = loadNative[json.RawMessage](r)
		case "strict":
			f.Strict = loadWord[Strictness](r)
		case "dialect":
			f.Dialect = loadWord[Dialect](r)
		case "extra":
			f.Extra = loadOpt(r, loadExtra)
		default:
			r.Skip()
		}
	}
	return f
}

// MarshalJSON writes the settings.
func (s ReasoningSettings) MarshalJSON() ([]byte, error) { return store("reasoning settings", s.store) }

// UnmarshalJSON reads stored settings.
func (s *ReasoningSettings) UnmarshalJSON(b []byte) error {
	return load(b, "reasoning settings", s, loadReasoningSettings)
}

func (s *ReasoningSettings) store(out *storer) {
	out.w.BeginObject()
	out.str("mode", string(s.Mode))
	out.str("effort", s.Effort)
	out.optNum("budget_tokens", s.BudgetTokens)
	out.str("summary", s.Summary)
	out.optBool("encrypted", s.Encrypted)
	storeOpt(out, "extra", s.Extra, (*Extra).store)
	out.w.EndObject()
}

func loadReasoningSettings(r *jsonwire.Reader) (s ReasoningSettings) {
	for key := range r.Object() {
		switch string(key) {
		case "mode":
			s.Mode = loadWord[ReasoningMode](r)
		case "effort":
			s.Effort = r.String()
		case "budget_tokens":
			s.BudgetTokens = loadOpt(r, (*jsonwire.Reader).Int)
		case "summary":
			s.Summary = r.String()
		case "encrypted":
			s.Encrypted = loadOpt(r, (*jsonwire.Reader).Bool)
		case "extra":
			s.Extra = loadOpt(r, loadExtra)
		default:
			r.Skip()
		}
	}
	return s
}

// MarshalJSON writes the knobs that are set; numbers stand in strings, in
// their own spelling.
func (s Sampling) MarshalJSON() ([]byte, error) { return store("sampling", s.store) }

// UnmarshalJSON reads stored knobs.
func (s *Sampling) UnmarshalJSON(b []byte) error { return load(b, "sampling", s, loadSampling) }

func (s *Sampling) zero() bool {
	return s.Temperature == nil && s.TopP == nil && s.TopK == nil && s.FrequencyPenalty == nil &&
		s.PresencePenalty == nil && s.Seed == nil && s.Stop == nil && s.Candidates == nil
}

func (s *Sampling) store(out *storer) {
	out.w.BeginObject()
	out.optNumber("temperature", s.Temperature)
	out.optNumber("top_p", s.TopP)
	out.optNum("top_k", s.TopK)
	out.optNumber("frequency_penalty", s.FrequencyPenalty)
	out.optNumber("presence_penalty", s.PresencePenalty)
	out.optNum("seed", s.Seed)
	storeList(out, "stop", s.Stop, storeString)
	out.optNum("candidates", s.Candidates)
	out.w.EndObject()
}

func loadSampling(r *jsonwire.Reader) (s Sampling) {
	for key := range r.Object() {
		switch string(key) {
		case "temperature":
			s.Temperature = loadOpt(r, loadWord[Number])
		case "top_p":
			s.TopP = loadOpt(r, loadWord[Number])
		case "top_k":
			s.TopK = loadOpt(r, (*jsonwire.Reader).Int)
		case "frequency_penalty":
			s.FrequencyPenalty = loadOpt(r, loadWord[Number])
		case "presence_penalty":
			s.PresencePenalty = loadOpt(r, loadWord[Number])
		case "seed":
			s.Seed = loadOpt(r, (*jsonwire.Reader).Int)
		case "stop":
			s.Stop = loadList(r, loadWord[string])
		case "candidates":
			s.Candidates = loadOpt(r, (*jsonwire.Reader).Int)
		default:
			r.Skip()
		}
	}
	return s
}
