package postgres

import "testing"

// SynchronousCommit is the setting of a connection.
func SynchronousCommit(t *testing.T, s *Store) (setting string) {
	if err := s.pool.QueryRow(t.Context(), `SHOW synchronous_commit`).Scan(&setting); err != nil {
		t.Fatal(err)
	}
	return setting
}
