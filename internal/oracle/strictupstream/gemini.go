package strictupstream

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// geminiSchema is the closed schema language of parameters and responseSchema.
var geminiSchema = newGeminiSchema()

func newGeminiSchema() *shape {
	s := &shape{} // it contains itself
	s.fields = names(`anyOf default description enum example format items maxItems maxLength maxProperties maximum minItems minLength
		minProperties minimum nullable pattern properties propertyOrdering required title type`, map[string]*shape{
		"anyOf": s, "items": s, "properties": {values: s},
	}).fields
	return s
}

var geminiContent = names("role parts", map[string]*shape{
	"parts": names(`audioTranscription codeExecutionResult executableCode fileData functionCall functionResponse inlineData mediaProcessing mediaResolution
		partMetadata speechMetadata text thought thoughtSignature toolCall toolResponse videoMetadata`, map[string]*shape{
		"functionCall":     names("id name args partialArgs willContinue", nil),
		"functionResponse": names("id name response parts scheduling willContinue", nil),
		"inlineData":       names("mimeType data displayName", nil),
		"fileData":         names("fileUri mimeType displayName", nil),
	}),
})

var geminiShape = names(`cachedContent contents continuationToken generationConfig labels model safetySettings serviceTier store systemInstruction
	toolConfig tools`, map[string]*shape{
	"contents": geminiContent, "systemInstruction": geminiContent,
	"generationConfig": names(`candidateCount enableEnhancedCivicAnswers frequencyPenalty imageConfig logprobs maxOutputTokens mediaResolution
		presencePenalty responseJsonSchema responseLogprobs responseMimeType responseModalities responseSchema seed speechConfig stopSequences
		temperature thinkingConfig topK topP`, map[string]*shape{
		"thinkingConfig": names("includeThoughts thinkingBudget thinkingLevel", nil), "responseSchema": geminiSchema,
	}),
	"toolConfig": names("functionCallingConfig includeServerSideToolInvocations retrievalConfig", map[string]*shape{
		"functionCallingConfig": names("mode allowedFunctionNames streamFunctionCallArguments", nil),
	}),
	"tools": names(`codeExecution computerUse enterpriseWebSearch exaAiSearch fileSearch functionDeclarations googleMaps googleSearch googleSearchRetrieval
		mcpServers parallelAiSearch retrieval urlContext`, map[string]*shape{
		"functionDeclarations": names("name description parameters parametersJsonSchema response responseJsonSchema behavior", map[string]*shape{
			"parameters": geminiSchema, "response": geminiSchema,
		}),
	}),
})

// geminiModel describes the parameters that a Gemini model accepts.
type geminiModel struct {
	version int // 20, 25, 30, …
	// least and most bound thinkingBudget; off says whether 0 is accepted.
	least, most float64
	off         bool
	// levels are the accepted values of thinkingLevel; nil means that the model accepts none.
	levels []string
}

var geminiName = regexp.MustCompile(`^gemini-(\d)(?:\.(\d))?-(pro|flash-lite|flash)`)

func geminiModelOf(name string) *geminiModel {
	m := geminiName.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	g := &geminiModel{version: major*10 + minor}
	switch {
	case g.version < 25:
	case g.version < 30 && m[3] == "pro":
		g.least, g.most = 128, 32768
	case g.version < 30 && m[3] == "flash-lite":
		g.least, g.most, g.off = 512, 24576, true
	case g.version < 30:
		g.least, g.most, g.off = 1, 24576, true
	case g.version == 30 && m[3] == "pro":
		g.levels = []string{"low", "high"}
	case m[3] == "pro", g.version >= 37:
		g.levels = []string{"low", "medium", "high"}
	default:
		g.levels = []string{"minimal", "low", "medium", "high"}
	}
	return g
}

func (j *judge) gemini(req map[string]any) *Refusal {
	if at := geminiShape.unknown(req, true); at != nil {
		name, where := at[len(at)-1], ""
		if len(at) > 1 {
			where = " at '" + brackets(at[:len(at)-1]) + "'"
		}
		return j.bad("", "", "Invalid JSON payload received. Unknown name \"%v\"%s: Cannot find field.", name, where)
	}
	g := geminiModelOf(j.model)
	if g == nil {
		return nil
	}
	config := camelObj(req, "generationConfig")
	if r := j.geminiThinking(g, camelObj(config, "thinkingConfig")); r != nil {
		return r
	}
	for _, key := range []string{"presencePenalty", "frequencyPenalty"} {
		if n, ok := number(config, key); ok && n != 0 && g.version >= 25 {
			return j.bad("", "", "Penalty is not enabled for this model")
		}
	}
	if r := j.geminiTools(g, req, config); r != nil {
		return r
	}
	if r := j.geminiLimits(g, req, config); r != nil {
		return r
	}
	if r := j.geminiSchemas(req, config); r != nil {
		return r
	}
	contents := objects(req, "contents")
	if len(contents) > 0 && str(contents[len(contents)-1], "role") == "model" {
		return j.bad("", "", "Please ensure that multiturn requests end with a user role or a function response.")
	}
	if g.version >= 30 {
		return j.thoughtSignatures(contents)
	}
	return nil
}

// camelObj reads an object under its lowerCamelCase or its snake_case name.
func camelObj(m map[string]any, key string) map[string]any {
	for k := range m {
		if lowerCamel(k) == key {
			return obj(m, k)
		}
	}
	return nil
}

func (j *judge) geminiThinking(g *geminiModel, t map[string]any) *Refusal {
	budget, hasBudget := number(t, "thinkingBudget")
	level := strings.ToLower(str(t, "thinkingLevel"))
	switch {
	case hasBudget && level != "":
		return j.bad("", "", "You can only set only one of thinking budget and thinking level.")
	case g.most == 0 && g.levels == nil && (budget > 0 || level != "" || t["includeThoughts"] == true):
		return j.bad("", "", "Thinking is not supported by this model.")
	case level != "" && g.levels == nil:
		return j.bad("", "", "Thinking level is not supported for this model.")
	case level != "" && !slices.Contains(g.levels, level):
		return j.bad("", "", "Thinking level %s is not supported for this model.", strings.ToUpper(level))
	case hasBudget && g.most > 0 && budget == 0 && !g.off:
		return j.bad("", "", "Budget 0 is invalid. This model only works in thinking mode.")
	case hasBudget && g.most > 0 && budget > 0 && (budget < g.least || budget > g.most), hasBudget && budget < -1:
		return j.bad("", "", "The thinking budget %v is invalid. Please choose a value between %v and %v.", budget, g.least, g.most)
	}
	return nil
}

func (j *judge) geminiTools(g *geminiModel, req, config map[string]any) *Refusal {
	functions, search := false, false
	for _, t := range objects(req, "tools") {
		functions = functions || set(t, "functionDeclarations")
		search = search || set(t, "googleSearch")
	}
	schema := set(config, "responseSchema") || set(config, "responseJsonSchema") || str(config, "responseMimeType") == "application/json"
	switch {
	case g.version >= 30 || !functions:
	case search:
		return j.bad("", "", "Tool use with function calling is unsupported")
	case schema:
		return j.bad("", "", "Function calling with a response mime type: 'application/json' is unsupported")
	}
	return nil
}

// thoughtSignatures checks that the first call of every step of the current turn is signed:
// the steps after the last user content without function responses.
func (j *judge) thoughtSignatures(contents []map[string]any) *Refusal {
	first := 0
	for i, c := range contents {
		if str(c, "role") != "model" && !answers(c) {
			first = i
		}
	}
	for i := first; i < len(contents); i++ {
		if str(contents[i], "role") != "model" {
			continue
		}
		for k, p := range objects(contents[i], "parts") {
			if !set(p, "functionCall") {
				continue
			}
			if str(p, "thoughtSignature") == "" {
				return j.bad("", "", "Function call is missing a thought_signature in functionCall parts. Function call `%s`, position %d.", str(obj(p, "functionCall"), "name"), k)
			}
			break
		}
	}
	return nil
}

// answers reports whether a content has function responses.
func answers(c map[string]any) bool {
	return slices.ContainsFunc(objects(c, "parts"), func(p map[string]any) bool { return set(p, "functionResponse") })
}

// skipSignature is the documented value for calls that did not come from Gemini.
const skipSignature = "skip_thought_signature_validator"

type geminiVendor struct{ defaultRules }

func (geminiVendor) dialect() dragoman.Dialect { return dialectname.Gemini }

func (geminiVendor) call(r *http.Request) (call, bool) {
	path := r.URL.Path
	i := strings.LastIndex(path, "/models/")
	if i < 0 {
		return call{}, false
	}
	i += len("/models/")
	n := max(i, strings.LastIndexByte(path, ':')) // model names may have a colon, too
	c := call{model: path[i:n], inPath: true, before: path[:i], after: path[n:]}
	switch c.after {
	case ":generateContent":
	case ":streamGenerateContent":
		c.array = r.URL.Query().Get("alt") != "sse"
	case ":countTokens":
		c.count = true
	default:
		return call{}, false
	}
	return c, true
}

func (geminiVendor) fields(j *judge, req map[string]any) *Refusal { return j.gemini(req) }

func (geminiVendor) conversation(req map[string]any, body []byte) ([]byte, bool) {
	return mergedContents(req, body), false
}

// accepts: the SDK sends back the empty text that ends a stream.
func (geminiVendor) accepts(rule string) bool { return rule == "an empty text" }

func (geminiVendor) resolve(s *state, j *judge, req map[string]any, body []byte) ([]byte, *Refusal) {
	if g := geminiModelOf(j.model); g == nil || g.version < 30 {
		return body, nil
	}
	return body, s.geminiSignatures(j, req)
}

func (geminiVendor) errorBody(r *Refusal) any {
	return map[string]any{"error": map[string]any{"code": r.Status, "message": r.Message, "status": "INVALID_ARGUMENT"}}
}

func (s *state) geminiSignatures(j *judge, req map[string]any) *Refusal {
	for _, c := range objects(req, "contents") {
		for _, p := range objects(c, "parts") {
			if sig := str(p, "thoughtSignature"); sig != "" && sig != skipSignature && !s.opaque[sig] {
				return j.bad("", "", "Corrupted thought signature.")
			}
		}
	}
	return nil
}

// mergedContents returns a Gemini request with adjacent contents of one role merged, as the
// vendor reads them. Its SDK sends a content for each chunk of a stream.
func mergedContents(req map[string]any, body []byte) []byte {
	var merged []map[string]any
	for _, c := range objects(req, "contents") {
		if n := len(merged); n > 0 && str(merged[n-1], "role") == str(c, "role") {
			both := slices.Concat(list(merged[n-1], "parts"), list(c, "parts"))
			merged[n-1] = map[string]any{"role": c["role"], "parts": both}
			continue
		}
		merged = append(merged, c)
	}
	if len(merged) == len(list(req, "contents")) {
		return body
	}
	return withField(body, "contents", merged)
}

// geminiLimits checks combinations of fields.
func (j *judge) geminiLimits(g *geminiModel, req, config map[string]any) *Refusal {
	if name := outOfRange(config, ranged{"temperature", 0, 2}, ranged{"topP", 0, 1}); name != "" {
		return j.bad("", "", "Unable to submit request because it has a %s value out of range.", name)
	}
	calling := obj(camelObj(req, "toolConfig"), "functionCallingConfig")
	if mode := str(calling, "mode"); len(list(calling, "allowedFunctionNames")) > 0 && mode != "ANY" && mode != "VALIDATED" {
		return j.bad("", "", "Function calling config: allowed_function_names can only be set when mode is ANY or VALIDATED.")
	}
	if set(req, "cachedContent") {
		for _, name := range []string{"tools", "toolConfig", "systemInstruction"} {
			if set(req, name) {
				return j.bad("", "", "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.")
			}
		}
	}
	for _, c := range objects(req, "contents") {
		for _, p := range objects(c, "parts") {
			if g.version < 30 && len(list(obj(p, "functionResponse"), "parts")) > 0 {
				return j.bad("", "", "functionResponse.parts is not supported by this model.")
			}
		}
	}
	return nil
}
