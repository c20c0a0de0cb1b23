package rpc

import "strings"

// MissingCapability reports that a request cannot be completed, because the client on whose
// behalf it was sent did not declare a capability. Need has names such as "elicitation",
// "elicitation/url", "sampling" and "roots".
type MissingCapability struct{ Need []string }

func (e *MissingCapability) Error() string {
	return "the client does not support " + strings.Join(e.Need, ", ") + ", which this request needs"
}
