package schema_test

import (
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/schema"
)

func init() { schema.SetProfiles(all.Profiles()) }
