package textkit

// InSet reports whether c is in a set of ranges such as "a-zA-Z0-9_-". An empty set
// allows everything; a "-" at the end is literal.
func InSet(set string, c byte) bool {
	if set == "" {
		return true
	}
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			if set[i] <= c && c <= set[i+2] {
				return true
			}
			i += 2
			continue
		}
		if set[i] == c {
			return true
		}
	}
	return false
}
