package session

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// recordsBody is the body of an entry of kind "records".
type recordsBody struct {
	V       int           `json:"v"`
	Run     string        `json:"run"`
	Records []tool.Record `json:"records"`
}

// recordsKey returns the key of the records of a run, whose id may have any characters.
func recordsKey(run string) string {
	h := sha256.Sum256([]byte(run))
	return string(base64.RawURLEncoding.AppendEncode([]byte("records:"), h[:]))
}

func recordsEntry(run string, records []tool.Record) (Entry, error) {
	body, err := json.Marshal(recordsBody{bodyVersion, run, records})
	if err != nil {
		return Entry{}, fmt.Errorf("%w: the records of run %.80q: %w", ErrInvalid, run, err)
	}
	return Entry{Kind: kindRecords, Key: recordsKey(run), Body: body}, nil
}

// SaveRecords does what [Session.Save] does and adds records of a run's tool calls, all or
// nothing. [Session.Records] returns them. Agents that run in the session call it.
func (s *Session) SaveRecords(ctx context.Context, messages []dragoman.Message, state []byte, run string, records []tool.Record) error {
	if len(records) == 0 {
		return s.Save(ctx, messages, state)
	}
	e, err := recordsEntry(run, records)
	if err != nil {
		return wrapErr("saving", s.ID(), err)
	}
	return s.save(ctx, messages, state, e)
}

// Records returns the records of a run's tool calls, in the order in which they were saved.
// Records that a rewind removed are not returned. The records of an agent omit texts that
// the messages hold.
func (s *Session) Records(ctx context.Context, run string) ([]tool.Record, error) {
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	entries, err := v.last(ctx, Query{Kinds: []string{kindRecords}, Key: recordsKey(run)})
	if err != nil {
		return nil, wrapErr("reading the records of", s.ID(), err)
	}
	var out []tool.Record
	for i := range entries {
		var body recordsBody
		if err := unmarshal(&entries[i], &body, &body.V); err != nil {
			return nil, wrapErr("reading the records of", s.ID(), err)
		}
		out = append(out, body.Records...)
	}
	return out, nil
}
