package schema

import "time"

// Limits on what this package reads. Beyond them, functions return an error that is
// dragoman.ErrTooLarge, instead of running for long or failing.
const (
	// maxSchemaBytes bounds the text of a schema.
	maxSchemaBytes = 1 << 20
	// maxSchemaDepth bounds the JSON nesting of a schema.
	maxSchemaDepth = 256
	// maxSchemaNodes bounds the subschemas of a schema that is lowered.
	maxSchemaNodes = 20_000
	// maxCompileNodes bounds the subschemas of a schema that is compiled.
	maxCompileNodes = 10_000
	// maxRefs bounds the references of a schema that is compiled.
	maxRefs = 2_000
	// maxArgumentBytes and maxArgumentDepth bound what Validate reads.
	maxArgumentBytes = 8 << 20
	maxArgumentDepth = 128
)

const (
	// maxExpansion limits the subschemas that expanding references may add, in addition to
	// twice the number in the source.
	maxExpansion = 6_000
	// maxMergeWork limits how many entries are examined while schemas are merged into one.
	maxMergeWork = 10_000_000
	// maxLosses limits a report; a last entry reports that there were more.
	maxLosses = 1_000
	// maxInPlace limits how many subschemas can apply to one value at one position. Sixteen
	// nested two-way allOf are 2^16 and refused.
	maxInPlace = 4_096
	// maxClosure bounds the memory of the analysis of recursive schemas.
	maxClosure = 200_000
	// maxWork bounds how many (value, subschema) pairs one Validate evaluates.
	maxWork = 1_000_000
	// maxNumberText and maxExponent bound a number: comparing it exactly costs
	// as much memory as it has digits.
	maxNumberText = 1_000
	maxExponent   = 1_000
	// One match, and all matches of one Validate, end after these.
	matchTimeout = 100 * time.Millisecond
	regexpBudget = 250 * time.Millisecond
	// maxNote limits one value that moves into a description.
	maxNote = 200
)
