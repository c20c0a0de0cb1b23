package schema_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/dragoman-go/dragoman/schema"
)

func TestNilValidatorRejectsEverything(t *testing.T) {
	var v *schema.Validator
	var violated *schema.ValidationError
	if err := v.Validate(json.RawMessage(`{}`)); !errors.As(err, &violated) {
		t.Errorf("%v", err)
	}
}
