package schema

// keyword is a JSON Schema keyword we know. The zero value is any other name.
type keyword uint8

const (
	kwOther keyword = iota
	kwSchema
	kwID
	kwRef
	kwAnchor
	kwDynamicRef
	kwDynamicAnchor
	kwRecursiveRef
	kwRecursiveAnchor
	kwVocabulary
	kwComment
	kwDefs
	kwDefinitions
	kwAllOf
	kwAnyOf
	kwOneOf
	kwNot
	kwIf
	kwThen
	kwElse
	kwDependentSchemas
	kwDependencies
	kwPrefixItems
	kwItems
	kwAdditionalItems
	kwContains
	kwProperties
	kwPatternProperties
	kwAdditionalProperties
	kwPropertyNames
	kwUnevaluatedItems
	kwUnevaluatedProperties
	kwType
	kwEnum
	kwConst
	kwMultipleOf
	kwMaximum
	kwExclusiveMaximum
	kwMinimum
	kwExclusiveMinimum
	kwMaxLength
	kwMinLength
	kwPattern
	kwMaxItems
	kwMinItems
	kwUniqueItems
	kwMaxContains
	kwMinContains
	kwMaxProperties
	kwMinProperties
	kwRequired
	kwDependentRequired
	kwFormat
	kwContentEncoding
	kwContentMediaType
	kwContentSchema
	kwTitle
	kwDescription
	kwDefault
	kwDeprecated
	kwReadOnly
	kwWriteOnly
	kwExamples
	kwExample
	kwNullable
	kwDiscriminator
	kwPropertyOrdering
	kwCount
)

// shape is the kind of value that a keyword has. Only the schema shapes are walked: the values
// of default, const, enum or examples are the author's data, whatever they look like (quirk
// A24).
type shape uint8

const (
	shapeData shape = iota
	shapeString
	shapeBool
	shapeNumber
	shapeCount
	shapeType
	shapeEnum
	shapeStrings
	shapeObject
	shapeValues
	shapeNames
	shapeSchema
	shapeItems
	shapeList
	shapeMap
	shapeDeps
)

// loss determines what happens to a keyword that a target does not know.
type loss uint8

const (
	// dropSilently: the model does not need to see the keyword.
	dropSilently loss = iota
	// moveToDescription: the keyword moves into the description.
	moveToDescription
)

type keywordInfo struct {
	name  string
	shape shape
	loss  loss
}

// keywords is indexed by keyword and never written.
var keywords = [kwCount]keywordInfo{
	kwSchema:                {"$schema", shapeString, dropSilently},
	kwID:                    {"$id", shapeString, dropSilently},
	kwRef:                   {"$ref", shapeString, moveToDescription},
	kwAnchor:                {"$anchor", shapeString, dropSilently},
	kwDynamicRef:            {"$dynamicRef", shapeString, moveToDescription},
	kwDynamicAnchor:         {"$dynamicAnchor", shapeString, dropSilently},
	kwRecursiveRef:          {"$recursiveRef", shapeString, moveToDescription},
	kwRecursiveAnchor:       {"$recursiveAnchor", shapeBool, dropSilently},
	kwVocabulary:            {"$vocabulary", shapeObject, dropSilently},
	kwComment:               {"$comment", shapeString, dropSilently},
	kwDefs:                  {"$defs", shapeMap, dropSilently},
	kwDefinitions:           {"definitions", shapeMap, dropSilently},
	kwAllOf:                 {"allOf", shapeList, moveToDescription},
	kwAnyOf:                 {"anyOf", shapeList, moveToDescription},
	kwOneOf:                 {"oneOf", shapeList, moveToDescription},
	kwNot:                   {"not", shapeSchema, moveToDescription},
	kwIf:                    {"if", shapeSchema, moveToDescription},
	kwThen:                  {"then", shapeSchema, moveToDescription},
	kwElse:                  {"else", shapeSchema, moveToDescription},
	kwDependentSchemas:      {"dependentSchemas", shapeMap, moveToDescription},
	kwDependencies:          {"dependencies", shapeDeps, moveToDescription},
	kwPrefixItems:           {"prefixItems", shapeList, moveToDescription},
	kwItems:                 {"items", shapeItems, moveToDescription},
	kwAdditionalItems:       {"additionalItems", shapeSchema, moveToDescription},
	kwContains:              {"contains", shapeSchema, moveToDescription},
	kwProperties:            {"properties", shapeMap, moveToDescription},
	kwPatternProperties:     {"patternProperties", shapeMap, moveToDescription},
	kwAdditionalProperties:  {"additionalProperties", shapeSchema, moveToDescription},
	kwPropertyNames:         {"propertyNames", shapeSchema, moveToDescription},
	kwUnevaluatedItems:      {"unevaluatedItems", shapeSchema, dropSilently},
	kwUnevaluatedProperties: {"unevaluatedProperties", shapeSchema, dropSilently},
	kwType:                  {"type", shapeType, moveToDescription},
	kwEnum:                  {"enum", shapeEnum, moveToDescription},
	kwConst:                 {"const", shapeData, moveToDescription},
	kwMultipleOf:            {"multipleOf", shapeNumber, moveToDescription},
	kwMaximum:               {"maximum", shapeNumber, moveToDescription},
	kwExclusiveMaximum:      {"exclusiveMaximum", shapeNumber, moveToDescription},
	kwMinimum:               {"minimum", shapeNumber, moveToDescription},
	kwExclusiveMinimum:      {"exclusiveMinimum", shapeNumber, moveToDescription},
	kwMaxLength:             {"maxLength", shapeCount, moveToDescription},
	kwMinLength:             {"minLength", shapeCount, moveToDescription},
	kwPattern:               {"pattern", shapeString, moveToDescription},
	kwMaxItems:              {"maxItems", shapeCount, moveToDescription},
	kwMinItems:              {"minItems", shapeCount, moveToDescription},
	kwUniqueItems:           {"uniqueItems", shapeBool, moveToDescription},
	kwMaxContains:           {"maxContains", shapeCount, moveToDescription},
	kwMinContains:           {"minContains", shapeCount, moveToDescription},
	kwMaxProperties:         {"maxProperties", shapeCount, moveToDescription},
	kwMinProperties:         {"minProperties", shapeCount, moveToDescription},
	kwRequired:              {"required", shapeStrings, moveToDescription},
	kwDependentRequired:     {"dependentRequired", shapeNames, moveToDescription},
	kwFormat:                {"format", shapeString, moveToDescription},
	kwContentEncoding:       {"contentEncoding", shapeString, moveToDescription},
	kwContentMediaType:      {"contentMediaType", shapeString, moveToDescription},
	kwContentSchema:         {"contentSchema", shapeSchema, moveToDescription},
	kwTitle:                 {"title", shapeString, dropSilently},
	kwDescription:           {"description", shapeString, dropSilently},
	kwDefault:               {"default", shapeData, moveToDescription},
	kwDeprecated:            {"deprecated", shapeBool, moveToDescription},
	kwReadOnly:              {"readOnly", shapeBool, dropSilently},
	kwWriteOnly:             {"writeOnly", shapeBool, dropSilently},
	kwExamples:              {"examples", shapeValues, moveToDescription},
	kwExample:               {"example", shapeData, moveToDescription},
	kwNullable:              {"nullable", shapeBool, dropSilently},
	kwDiscriminator:         {"discriminator", shapeData, dropSilently},
	kwPropertyOrdering:      {"propertyOrdering", shapeStrings, dropSilently},
}

// lookup finds a keyword by its name, without allocating.
func lookup(name []byte) keyword {
	switch string(name) {
	case "$schema":
		return kwSchema
	case "$id":
		return kwID
	case "$ref":
		return kwRef
	case "$anchor":
		return kwAnchor
	case "$dynamicRef":
		return kwDynamicRef
	case "$dynamicAnchor":
		return kwDynamicAnchor
	case "$recursiveRef":
		return kwRecursiveRef
	case "$recursiveAnchor":
		return kwRecursiveAnchor
	case "$vocabulary":
		return kwVocabulary
	case "$comment":
		return kwComment
	case "$defs":
		return kwDefs
	case "definitions":
		return kwDefinitions
	case "allOf":
		return kwAllOf
	case "anyOf":
		return kwAnyOf
	case "oneOf":
		return kwOneOf
	case "not":
		return kwNot
	case "if":
		return kwIf
	case "then":
		return kwThen
	case "else":
		return kwElse
	case "dependentSchemas":
		return kwDependentSchemas
	case "dependencies":
		return kwDependencies
	case "prefixItems":
		return kwPrefixItems
	case "items":
		return kwItems
	case "additionalItems":
		return kwAdditionalItems
	case "contains":
		return kwContains
	case "properties":
		return kwProperties
	case "patternProperties":
		return kwPatternProperties
	case "additionalProperties":
		return kwAdditionalProperties
	case "propertyNames":
		return kwPropertyNames
	case "unevaluatedItems":
		return kwUnevaluatedItems
	case "unevaluatedProperties":
		return kwUnevaluatedProperties
	case "type":
		return kwType
	case "enum":
		return kwEnum
	case "const":
		return kwConst
	case "multipleOf":
		return kwMultipleOf
	case "maximum":
		return kwMaximum
	case "exclusiveMaximum":
		return kwExclusiveMaximum
	case "minimum":
		return kwMinimum
	case "exclusiveMinimum":
		return kwExclusiveMinimum
	case "maxLength":
		return kwMaxLength
	case "minLength":
		return kwMinLength
	case "pattern":
		return kwPattern
	case "maxItems":
		return kwMaxItems
	case "minItems":
		return kwMinItems
	case "uniqueItems":
		return kwUniqueItems
	case "maxContains":
		return kwMaxContains
	case "minContains":
		return kwMinContains
	case "maxProperties":
		return kwMaxProperties
	case "minProperties":
		return kwMinProperties
	case "required":
		return kwRequired
	case "dependentRequired":
		return kwDependentRequired
	case "format":
		return kwFormat
	case "contentEncoding":
		return kwContentEncoding
	case "contentMediaType":
		return kwContentMediaType
	case "contentSchema":
		return kwContentSchema
	case "title":
		return kwTitle
	case "description":
		return kwDescription
	case "default":
		return kwDefault
	case "deprecated":
		return kwDeprecated
	case "readOnly":
		return kwReadOnly
	case "writeOnly":
		return kwWriteOnly
	case "examples":
		return kwExamples
	case "example":
		return kwExample
	case "nullable":
		return kwNullable
	case "discriminator":
		return kwDiscriminator
	case "propertyOrdering":
		return kwPropertyOrdering
	default:
		return kwOther
	}
}

// keywordSet is a set of keywords. The zero value is empty.
type keywordSet [2]uint64

func setOf(ks ...keyword) keywordSet {
	var s keywordSet
	for _, k := range ks {
		s[k/64] |= 1 << (k % 64)
	}
	return s
}

func (s keywordSet) has(k keyword) bool { return s[k/64]&(1<<(k%64)) != 0 }

func (s *keywordSet) add(k keyword) { s[k/64] |= 1 << (k % 64) }

// annotation reports whether a keyword describes a value without constraining it.
func annotation(k keyword) bool {
	switch k {
	case kwTitle, kwDescription, kwDefault, kwDeprecated, kwReadOnly, kwWriteOnly, kwExamples, kwExample,
		kwComment, kwSchema, kwID, kwAnchor, kwDynamicAnchor, kwRecursiveAnchor, kwVocabulary, kwDiscriminator, kwOther,
		kwDefs, kwDefinitions:
		return true
	default:
		return false
	}
}
