package bodies

// DefaultMax is the bound used for MaxBytes 0.
const DefaultMax = 64 << 20

// MaxValues bounds the JSON values of one body, or of one event of a stream,
// counted by the commas between them. A value of three bytes becomes several
// hundred in the canonical form, so that the bound on bytes alone would let a
// hostile body take gigabytes.
const MaxValues = 1 << 20

// MaxConfigFile is how long a config file may be, in bytes.
const MaxConfigFile = 8 << 20
