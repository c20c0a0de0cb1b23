// Package specs checks encoded requests against the official documents of the APIs, and against
// rules of an API that no schema can express. The documents and the recorded requests are not part
// of the module; the tests skip without them.
package specs
