package framing

// DefaultMaxBody is the limit that MaxBytes 0 means.
const DefaultMaxBody = 64 << 20

// MaxValues limits the JSON values of one body, or of one event of a stream, counted by
// the commas between them. A value of three bytes takes several hundred in canonical
// form, so with a limit on bytes alone a hostile body could take gigabytes.
const MaxValues = 1 << 20

// MaxConfigFile is the maximum length of a config file in bytes.
const MaxConfigFile = 8 << 20
