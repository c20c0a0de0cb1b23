package sqlite

import "testing"

// Synchronous is the setting of the connection that writes: 2 is FULL, 1 NORMAL.
func Synchronous(t *testing.T, s *Store) (n int) {
	if err := s.write.QueryRowContext(t.Context(), `PRAGMA synchronous`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
