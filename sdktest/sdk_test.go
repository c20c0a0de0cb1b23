package sdktest

import (
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
)

var _ = anthropic.Message{}
var _ = openai.ChatCompletion{}
var _ = responses.Response{}
var _ openaichat.Codec

func TestX(t *testing.T) {}
