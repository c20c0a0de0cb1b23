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
	// lostQuietly: the model does not need to see the keyword.
	lostQuietly loss = iota
	// lostDescribed: the keyword moves into the description.
	lostDescribed
)

type keywordInfo struct {
	name  string
	shape shape
	loss  loss
}

// keywords is indexed by keyword and never written.
var keywords = [kwCount]keywordInfo{
	kwSchema:                {"$schema", shapeString, lostQuietly},
	kwID:                    {"$id", shapeString, lostQuietly},
	kwRef:                   {"$ref", shapeString, lostDescribed},
	kwAnchor:                {"$anchor", shapeString, lostQuietly},
	kwDynamicRef:            {"$dynamicRef", shapeString, lostDescribed},
	kwDynamicAnchor:         {"$dynamicAnchor", shapeString, lostQuietly},
	kwRecursiveRef:          {"$recursiveRef", shapeString, lostDescribed},
	kwRecursiveAnchor:       {"$recursiveAnchor", shapeBool, lostQuietly},
	kwVocabulary:            {"$vocabulary", shapeObject, lostQuietly},
	kwComment:               {"$comment", shapeString, lostQuietly},
	kwDefs:                  {"$defs", shapeMap, lostQuietly},
	kwDefinitions:           {"definitions", shapeMap, lostQuietly},
	kwAllOf:                 {"allOf", shapeList, lostDescribed},
	kwAnyOf:                 {"anyOf", shapeList, lostDescribed},
	kwOneOf:                 {"oneOf", shapeList, lostDescribed},
	kwNot:                   {"not", shapeSchema, lostDescribed},
	kwIf:                    {"if", shapeSchema, lostDescribed},
	kwThen:                  {"then", shapeSchema, lostDescribed},
	kwElse:                  {"else", shapeSchema, lostDescribed},
	kwDependentSchemas:      {"dependentSchemas", shapeMap, lostDescribed},
	kwDependencies:          {"dependencies", shapeDeps, lostDescribed},
	kwPrefixItems:           {"prefixItems", shapeList, lostDescribed},
	kwItems:                 {"items", shapeItems, lostDescribed},
	kwAdditionalItems:       {"additionalItems", shapeSchema, lostDescribed},
	kwContains:              {"contains", shapeSchema, lostDescribed},
	kwProperties:            {"properties", shapeMap, lostDescribed},
	kwPatternProperties:     {"patternProperties", shapeMap, lostDescribed},
	kwAdditionalProperties:  {"additionalProperties", shapeSchema, lostDescribed},
	kwPropertyNames:         {"propertyNames", shapeSchema, lostDescribed},
	kwUnevaluatedItems:      {"unevaluatedItems", shapeSchema, lostQuietly},
	kwUnevaluatedProperties: {"unevaluatedProperties", shapeSchema, lostQuietly},
	kwType:                  {"type", shapeType, lostDescribed},
	kwEnum:                  {"enum", shapeEnum, lostDescribed},
	kwConst:                 {"const", shapeData, lostDescribed},
	kwMultipleOf:            {"multipleOf", shapeNumber, lostDescribed},
	kwMaximum:               {"maximum", shapeNumber, lostDescribed},
	kwExclusiveMaximum:      {"exclusiveMaximum", shapeNumber, lostDescribed},
	kwMinimum:               {"minimum", shapeNumber, lostDescribed},
	kwExclusiveMinimum:      {"exclusiveMinimum", shapeNumber, lostDescribed},
	kwMaxLength:             {"maxLength", shapeCount, lostDescribed},
	kwMinLength:             {"minLength", shapeCount, lostDescribed},
	kwPattern:               {"pattern", shapeString, lostDescribed},
	kwMaxItems:              {"maxItems", shapeCount, lostDescribed},
	kwMinItems:              {"minItems", shapeCount, lostDescribed},
	kwUniqueItems:           {"uniqueItems", shapeBool, lostDescribed},
	kwMaxContains:           {"maxContains", shapeCount, lostDescribed},
	kwMinContains:           {"minContains", shapeCount, lostDescribed},
	kwMaxProperties:         {"maxProperties", shapeCount, lostDescribed},
	kwMinProperties:         {"minProperties", shapeCount, lostDescribed},
	kwRequired:              {"required", shapeStrings, lostDescribed},
	kwDependentRequired:     {"dependentRequired", shapeNames, lostDescribed},
	kwFormat:                {"format", shapeString, lostDescribed},
	kwContentEncoding:       {"contentEncoding", shapeString, lostDescribed},
	kwContentMediaType:      {"contentMediaType", shapeString, lostDescribed},
	kwContentSchema:         {"contentSchema", shapeSchema, lostDescribed},
	kwTitle:                 {"title", shapeString, lostQuietly},
	kwDescription:           {"description", shapeString, lostQuietly},
	kwDefault:               {"default", shapeData, lostDescribed},
	kwDeprecated:            {"deprecated", shapeBool, lostDescribed},
	kwReadOnly:              {"readOnly", shapeBool, lostQuietly},
	kwWriteOnly:             {"writeOnly", shapeBool, lostQuietly},
	kwExamples:              {"examples", shapeValues, lostDescribed},
	kwExample:               {"example", shapeData, lostDescribed},
	kwNullable:              {"nullable", shapeBool, lostQuietly},
	kwDiscriminator:         {"discriminator", shapeData, lostQuietly},
	kwPropertyOrdering:      {"propertyOrdering", shapeStrings, lostQuietly},
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
