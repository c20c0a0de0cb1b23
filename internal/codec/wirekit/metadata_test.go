package wirekit_test

import (
	"strconv"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

func TestDuplicateMetadataKeyWritesLastValue(t *testing.T) {
	var w jsonwire.Writer
	var rep dragoman.Report
	wirekit.WriteMetadata(&w, []dragoman.KeyValue{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}, {Key: "a", Value: "3"}}, &rep)
	if got := string(w.Buf); got != `{"b":"2","a":"3"}` || len(rep.Losses) != 1 {
		t.Errorf("%s, %v", got, rep)
	}
}

func TestWriteMetadataIsLinear(t *testing.T) {
	const n = 200_000 // quadratic time would take a minute
	metadata := make([]dragoman.KeyValue, n)
	for i := range metadata {
		metadata[i].Key = "key " + strconv.Itoa(i)
	}
	var w jsonwire.Writer
	start := time.Now()
	wirekit.WriteMetadata(&w, metadata, new(dragoman.Report))
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("%d entries took %v", n, took)
	}
}
