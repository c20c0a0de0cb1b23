package dragoman

import (
	"encoding/base64"
	"strconv"
)

// Num is a number for [Sampling], in its shortest spelling.
func Num(f float64) *Number {
	n := Number(strconv.FormatFloat(f, 'g', -1, 64))
	return &n
}

// Image is an image part with its content.
func Image(mime string, content []byte) *Media {
	return &Media{Media: MediaImage, MIME: mime, Base64: base64.StdEncoding.EncodeToString(content)}
}

// Result answers the call with parts: text, media or data.
func (c *ToolCall) Result(parts ...Part) *ToolResult {
	return &ToolResult{
		CallID: c.ID, Name: c.Name, Namespace: c.Namespace, Payload: c.Payload,
		Content: parts, Outcome: OutcomeOK,
	}
}

// ResultText answers the call with text.
func (c *ToolCall) ResultText(text string) *ToolResult { return c.Result(&Text{Text: text}) }

// Fail answers the call with an error, in words a model can act on. A call
// with a Problem is answered so:
//
//	if call.Problem != nil {
//		return call.Fail(call.Problem.Message)
//	}
func (c *ToolCall) Fail(message string) *ToolResult {
	r := c.ResultText(message)
	r.Outcome = OutcomeError
	return r
}

// String is the number, or "unknown".
func (c Count) String() string {
	if !c.Known {
		return "unknown"
	}
	return strconv.FormatInt(c.N, 10)
}
