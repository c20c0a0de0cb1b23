package bedrock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dragoman-go/dragoman/internal/eventstream"
)

// checkWire holds a stream against what the API itself sends, written from the
// wire reference: one messageStart; blocks in order with dense indexes, one open
// at a time; a start for calls, results and images and for nothing else; deltas
// of the block's own kind and never empty; a stop for every block; messageStop,
// then metadata; or an exception and nothing behind it.
func checkWire(stream []byte) error {
	c := wireChecker{open: -1}
	var p eventstream.Parser
	if err := p.Feed(stream, c.frame); err != nil {
		return err
	}
	if err := p.Close(); err != nil {
		return err
	}
	if c.state != "ended" {
		return fmt.Errorf("the stream ends in state %q", c.state)
	}
	return nil
}

type wireChecker struct {
	state  string
	open   int // index of the open block
	kind   string
	next   int
	deltas int
}

func (c *wireChecker) frame(f eventstream.Frame) error {
	if string(f.Text(":content-type")) != "application/json" {
		return errors.New("no content type")
	}
	if c.state == "ended" {
		return errors.New("a frame behind the end")
	}
	if string(f.Text(":message-type")) == "exception" {
		c.state = "ended"
		switch typ := string(f.Text(":exception-type")); typ {
		case "internalServerException", "modelStreamErrorException", "serviceUnavailableException", "throttlingException", "validationException":
		default:
			return fmt.Errorf("no such exception as %q", typ)
		}
		var v struct{ Message *string }
		if err := json.Unmarshal(f.Payload, &v); err != nil || v.Message == nil {
			return fmt.Errorf("an exception without a message: %s", f.Payload)
		}
		return nil
	}
	typ := string(f.Text(":event-type"))
	if string(f.Text(":message-type")) != "event" || typ == "" {
		return fmt.Errorf("no event: %q", f.Headers)
	}
	var v struct {
		Role              string
		ContentBlockIndex *int
		Start             map[string]any
		Delta             map[string]any
		StopReason        string
		Usage             map[string]any
		Metrics           json.RawMessage
	}
	if err := json.Unmarshal(f.Payload, &v); err != nil {
		return fmt.Errorf("%w: %s", err, f.Payload)
	}
	if (v.ContentBlockIndex != nil) != (typ == "contentBlockStart" || typ == "contentBlockDelta" || typ == "contentBlockStop") {
		return fmt.Errorf("an index too many or too few: %s", f.Payload)
	}
	switch typ {
	case "messageStart":
		if c.state != "" || v.Role != "assistant" {
			return fmt.Errorf("messageStart in state %q: %s", c.state, f.Payload)
		}
		c.state = "message"
	case "contentBlockStart":
		return c.start(*v.ContentBlockIndex, v.Start)
	case "contentBlockDelta":
		return c.delta(*v.ContentBlockIndex, v.Delta)
	case "contentBlockStop":
		if c.state != "message" || c.open != *v.ContentBlockIndex {
			return fmt.Errorf("stop of block %d while %d is open", *v.ContentBlockIndex, c.open)
		}
		if c.deltas == 0 && c.kind != "toolUse" && c.kind != "toolResult" {
			return fmt.Errorf("block %d has nothing in it", c.open)
		}
		c.open = -1
	case "messageStop":
		if c.state != "message" || c.open >= 0 || v.StopReason == "" {
			return fmt.Errorf("messageStop in state %q, block %d open: %s", c.state, c.open, f.Payload)
		}
		c.state = "stopped"
	case "metadata":
		if c.state != "stopped" || v.Usage["inputTokens"] == nil || v.Usage["outputTokens"] == nil || v.Usage["totalTokens"] == nil || v.Metrics == nil {
			return fmt.Errorf("metadata in state %q: %s", c.state, f.Payload)
		}
		c.state = "ended"
	default:
		return fmt.Errorf("no such event as %q", typ)
	}
	return nil
}

func (c *wireChecker) begin(index int, kind string) error {
	if c.state != "message" || c.open >= 0 || index != c.next {
		return fmt.Errorf("block %d starts in state %q while %d is open, want %d", index, c.state, c.open, c.next)
	}
	c.open, c.kind, c.deltas = index, kind, 0
	c.next++
	return nil
}

// start checks what a block starts as: one of the things that it can be. Members that
// nobody knows may stand beside it.
func (c *wireChecker) start(index int, start map[string]any) error {
	kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(start)), func(k string) bool {
		return k != "toolUse" && k != "toolResult" && k != "image"
	})
	if len(kinds) != 1 {
		return fmt.Errorf("a start of %q", kinds)
	}
	if inner, ok := start["toolUse"].(map[string]any); kinds[0] == "toolUse" && (!ok || inner["toolUseId"] == nil || inner["name"] == nil || inner["input"] != nil) {
		return fmt.Errorf("a call that starts with %v", inner)
	}
	return c.begin(index, kinds[0])
}

func (c *wireChecker) delta(index int, delta map[string]any) error {
	if len(delta) != 1 {
		return fmt.Errorf("a delta of %d things", len(delta))
	}
	for kind, value := range delta {
		if s, ok := value.(string); ok && s == "" {
			return errors.New("an empty delta")
		}
		block := kind
		if kind == "citation" {
			block = "text"
		}
		if c.open < 0 && (block == "text" || block == "reasoningContent") {
			if err := c.begin(index, block); err != nil {
				return err
			}
		}
		if c.open != index || c.kind != block {
			return fmt.Errorf("a %s for block %d while %d is open and a %s", kind, index, c.open, c.kind)
		}
		c.deltas++
	}
	return nil
}
