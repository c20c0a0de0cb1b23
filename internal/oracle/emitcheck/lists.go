package emitcheck

import (
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// lists and models hold the rules for model listings and model descriptions.
var (
	lists = map[dragoman.Dialect]func(object){
		dialectname.OpenAIChat: openaiModels, dialectname.Anthropic: anthropicModels, dialectname.Gemini: geminiModels, dialectname.Ollama: ollamaModels,
	}
	models = map[dragoman.Dialect]func(object){
		dialectname.OpenAIChat: openaiModel, dialectname.Anthropic: anthropicModel, dialectname.Gemini: geminiModel,
	}
)

func openaiModels(r object) {
	r.is("object", "list")
	for _, m := range r.objects("data") {
		openaiModel(m)
	}
}

func openaiModel(m object) {
	m.nonEmptyText("id")
	m.is("object", "model")
	m.count("created")
	m.nonEmptyText("owned_by")
}

func anthropicModels(r object) {
	first, last := "", ""
	for i, m := range r.objects("data") {
		anthropicModel(m)
		if last = m.str("id"); i == 0 {
			first = last
		}
	}
	r.flag("has_more")
	for key, want := range map[string]string{"first_id": first, "last_id": last} {
		if id, _ := r.textOrNull(key); id != want {
			r.bad(key, "%q, but the list has %q", id, want)
		}
	}
}

// responsesItems checks the input items of a response.
func responsesItems(r object) {
	r.is("object", "list")
	for _, item := range r.objects("data") {
		item.nonEmptyText("type")
	}
	r.flag("has_more")
	r.textOrNull("first_id")
	r.textOrNull("last_id")
}

func anthropicModel(m object) {
	m.is("type", "model")
	m.nonEmptyText("id")
	m.nonEmptyText("display_name")
	m.time("created_at")
}

func geminiModels(r object) {
	for _, m := range r.objects("models") {
		geminiModel(m)
	}
}

func geminiModel(m object) {
	if name := m.nonEmptyText("name"); !strings.HasPrefix(name, "models/") {
		m.bad("name", "%q does not begin with models/", name)
	}
	m.list("supportedGenerationMethods")
}

func ollamaModels(r object) {
	for _, m := range r.objects("models") {
		m.nonEmptyText("name")
		m.nonEmptyText("model")
		m.time("modified_at")
		m.count("size")
		m.nonEmptyText("digest")
		m.obj("details")
	}
}

func ollamaShown(r object) {
	r.obj("details")
	r.obj("model_info")
	r.list("capabilities")
}

func ollamaVersion(r object) { r.str("version") }

func deletedResponse(r object) {
	r.nonEmptyText("id")
	r.is("object", "response")
	if !r.flag("deleted") {
		r.bad("deleted", "false in a successful response")
	}
}

// time checks a time in RFC 3339 format.
func (o object) time(key string) {
	if at := o.str(key); o.c.err == nil {
		if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
			o.bad(key, "%q is not an RFC 3339 time", at)
		}
	}
}
