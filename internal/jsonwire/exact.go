package jsonwire

import "strconv"

// Inexact returns the first integer in a JSON text that a double cannot represent
// exactly, or nil. Software that stores numbers as doubles changes it.
func Inexact(raw []byte) []byte {
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			i = stringEnd(raw, i)
		case c == '-' || '0' <= c && c <= '9':
			end, whole := numberEnd(raw, i)
			if whole && end-i > 15 && !fitsFloat64(string(raw[i:end])) {
				return raw[i:end]
			}
			i = end
		default:
			i++
		}
	}
	return nil
}

// stringEnd returns the end of the string that starts at i.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// numberEnd returns the end of the number that starts at i, and whether it is written
// as an integer.
func numberEnd(raw []byte, i int) (end int, whole bool) {
	whole = true
	for end = i + 1; end < len(raw); end++ {
		switch c := raw[end]; {
		case '0' <= c && c <= '9':
		case c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-':
			whole = false
		default:
			return end, whole
		}
	}
	return end, whole
}

// fitsFloat64 reports whether a float64 represents an integer exactly.
func fitsFloat64(integer string) bool {
	f, err := strconv.ParseFloat(integer, 64)
	return err == nil && strconv.FormatFloat(f, 'f', 0, 64) == integer
}
