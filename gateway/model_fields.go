package gateway

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// Servers read more fields than model to choose a model: lists of fallbacks, routing
// preferences, presets, tools that call a model of their own. A key with a list of models
// must not reach other models through them. Such a request is refused on every route,
// because it is unknown whether the upstream reads the field, and the next model of the
// route may be on another server.

// checkFields refuses a request of a key with a list of models whose body, or query, has a
// field that chooses models or their servers in addition to the field model, unless the
// key may use it.
func (x *exchange) checkFields(key *access.Key) error {
	if len(key.Models) == 0 {
		return nil
	}
	for name := range x.r.URL.Query() {
		if path := "?" + name; choosesModel(normalizeField(name), true) && !key.AllowsField(path) {
			return fieldRefused(key, path)
		}
	}
	r := jsonwire.NewReader(x.body)
	if r.Kind() != '{' {
		return serving.AsRequestError(errors.New("the body is not a JSON object"))
	}
	s := fieldSearch{key: key, urlModel: x.call.Model, inURL: x.call.InURL}
	for _, params := range x.r.Header.Values(routingHeader) {
		if !s.routesToURLModel(params) && !key.AllowsField(strings.ToLower(routingHeader)) {
			return fieldRefused(key, strings.ToLower(routingHeader))
		}
	}
	s.searchObject(r, "", false)
	if s.found != "" {
		return fieldRefused(key, s.found)
	}
	if err := r.End(); err != nil {
		return serving.AsRequestError(fmt.Errorf("the body is not valid JSON: %w", err))
	}
	return nil
}

func fieldRefused(key *access.Key, path string) error {
	return refusal(&access.RefusedError{Reason: access.FieldNotAllowed, Key: key.Name, Field: truncate(path), Allowed: key.Models})
}

// fieldSearch looks for the first field that chooses models.
type fieldSearch struct {
	key *access.Key
	// urlModel is the model in the URL, if inURL is set: the field model of the body may repeat
	// it.
	urlModel string
	inURL    bool
	found    string
}

// routingHeader is the Google header that names the resource of a request, as a query.
const routingHeader = "X-Goog-Request-Params"

// routesToURLModel reports whether a routing header names no model other than that of the URL.
func (s *fieldSearch) routesToURLModel(params string) bool {
	query, err := url.ParseQuery(params)
	if err != nil {
		return false
	}
	for name, values := range query {
		for _, value := range values {
			if choosesModel(normalizeField(name), false) && value != "" && !s.isURLModel(value) {
				return false
			}
		}
	}
	return true
}

// searchObject checks the fields of an object at path. schema reports that the object is a JSON
// Schema or a part of one.
func (s *fieldSearch) searchObject(r *jsonwire.Reader, path string, schema bool) {
	for name := range r.Object() {
		if s.found != "" {
			r.Skip()
			continue
		}
		field, plain := path+string(name), normalizeField(string(name))
		top := path == ""
		switch {
		case top && string(name) == "model" && !s.inURL: // the model name is checked separately
			r.Skip()
		case top && plain == "input" && !s.key.AllowsField(field):
			s.searchItems(r, field+".")
		case top && slices.Contains(contentFields, plain), schema && slices.Contains(schemaKeywords, plain), isToolExamples(path, plain):
			r.Skip()
		case s.key.AllowsField(field):
			r.Skip()
		case choosesModel(plain, top):
			if raw := string(r.Raw()); !isSet(raw) || s.inURL && plain == "model" && s.repeatsURLModel(raw) {
				continue
			}
			s.found = field
		default:
			s.searchValue(r, field, schema || isSchema(path, plain))
		}
	}
}

// isSchema reports whether a field, by the path before it and its plain name, holds a JSON
// Schema.
func isSchema(path, plain string) bool {
	if path == "" {
		return slices.Contains(schemaBodyFields, plain)
	}
	top, _, _ := strings.Cut(path, ".")
	if top == "input" {
		top = "tools" // see items
	}
	return slices.Contains(schemaHolders, normalizeField(top)) && slices.Contains(schemaFields, plain)
}

// isToolExamples reports whether a field holds examples of a tool's arguments.
func isToolExamples(path, plain string) bool {
	return plain == "inputexamples" && (normalizeField(path) == "tools" || normalizeField(path) == "inputtools")
}

// searchItems checks the tools of the items of a Responses input: items can add tools in the
// middle of a conversation.
func (s *fieldSearch) searchItems(r *jsonwire.Reader, path string) {
	if r.Kind() != '[' {
		r.Skip()
		return
	}
	for range r.Array() {
		s.searchItem(r, path)
	}
}

func (s *fieldSearch) searchItem(r *jsonwire.Reader, path string) {
	if r.Kind() != '{' {
		r.Skip()
		return
	}
	for name := range r.Object() {
		if s.found == "" && normalizeField(string(name)) == "tools" {
			s.searchValue(r, path+string(name), false)
		} else {
			r.Skip()
		}
	}
}

// checkItem refuses an item that is added to a conversation of a key with a list of models,
// if its tools choose models.
func checkItem(key *access.Key, item []byte) error {
	if len(key.Models) == 0 {
		return nil
	}
	s := fieldSearch{key: key}
	if s.searchItem(jsonwire.NewReader(item), "input."); s.found != "" {
		return fieldRefused(key, s.found)
	}
	return nil
}

// searchValue checks the fields below a value. Elements of lists have the path of the list.
func (s *fieldSearch) searchValue(r *jsonwire.Reader, path string, schema bool) {
	switch r.Kind() {
	case '{':
		s.searchObject(r, path+".", schema)
	case '[':
		for range r.Array() {
			s.searchValue(r, path, schema)
		}
	default:
		r.Skip()
	}
}

// repeatsURLModel reports whether a value is the model of the URL, as a resource or by its name.
func (s *fieldSearch) repeatsURLModel(raw string) bool {
	name := jsonwire.NewReader([]byte(raw))
	if name.Kind() != '"' {
		return false
	}
	return s.isURLModel(name.String())
}

func (s *fieldSearch) isURLModel(name string) bool {
	return strings.TrimPrefix(name, "models/") == strings.TrimPrefix(s.urlModel, "models/")
}

// isSet reports whether a value is more than an empty one, which SDKs write for an option
// that is not set.
func isSet(raw string) bool {
	return !slices.Contains([]string{"null", "[]", "{}", `""`, "false"}, raw)
}

// normalizeField normalizes the name of a field: it removes differences that servers may
// ignore, the case of letters and the signs between words. Gemini takes camel and snake
// case.
func normalizeField(name string) string {
	return strings.Map(func(c rune) rune {
		switch c {
		case '_', '-', '.', '$', ' ':
			return -1
		case 'ſ': // Go decoders treat it as s, as ToLower treats the Kelvin sign as k
			return 's'
		default:
			return c
		}
	}, strings.ToLower(name))
}

// choosesModel reports whether a field, by its plain name, chooses models or their servers.
// Names that contain "model", "fallback" or "deployment" do so everywhere; routingFields
// do so at the top of a body.
func choosesModel(plain string, top bool) bool {
	switch {
	case plain == "modelarmorconfig": // Vertex: a filter
		return false
	case strings.Contains(plain, "model"), strings.Contains(plain, "fallback"), strings.Contains(plain, "deployment"):
		return true
	default:
		return top && slices.Contains(routingFields, plain)
	}
}

var (
	// routingFields are the plain names of other fields that choose models or their
	// servers.
	routingFields = []string{
		"route", "router", "routing", "provider", "providers", "plugins", "preset", // OpenRouter
		"provideroptions", "extrabody", // Vercel; SDKs that forward unknown settings
		"userconfig", "customllmprovider", "apibase", "baseurl", "apikey", "litellmparams", "routersettings", "routersettingsoverride", "promptid", "engine", // LiteLLM
		"targets", "strategy", "config", // Portkey
		"lora", "lorapath", "loraid", "lorarequest", "adapterid", "adaptersource", "adapter", // SGLang, llama.cpp, TGI, LoRAX
		"agentid", "backend", // Mistral; LocalAI
	}
	// contentFields are the plain names of top-level fields that hold the conversation or
	// notes of the client.
	contentFields = []string{
		"messages", "input", "contents", "system", "systeminstruction", "instructions", "prompt", "prediction", "documents", "metadata", "clientmetadata", "labels",
	}
	// schemaHolders are the plain names of top-level fields below which schemaFields are
	// the plain names of fields that hold a JSON Schema. schemaBodyFields are top-level
	// fields that hold one themselves.
	schemaHolders    = []string{"tools", "functions", "responseformat", "text", "outputformat", "outputconfig", "generationconfig", "structuredoutputs", "nvext"}
	schemaFields     = []string{"parameters", "parametersjsonschema", "inputschema", "outputschema", "schema", "jsonschema", "response", "responseschema", "responsejsonschema", "json", "guidedjson", "value"}
	schemaBodyFields = []string{"format", "jsonschema", "guidedjson"} // Ollama, llama.cpp, vLLM
	// schemaKeywords are the plain names of JSON Schema keywords below which names are the
	// client's own.
	schemaKeywords = []string{"properties", "patternproperties", "defs", "definitions", "dependentschemas", "dependencies", "required", "enum", "const", "default", "example", "examples"}
)
