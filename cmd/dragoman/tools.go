package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/serving/sniff"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// tools converts tool definitions. It puts them into a request that has nothing else.
func (c *conversion) tools(data []byte) ([]byte, error) {
	specs, rep, err := readTools(data, c.result.From)
	c.addLosses(reading, rep)
	if err != nil {
		return nil, err
	}
	if c.to.Dialect() == sniff.Canonical {
		return stored(specs)
	}
	target, err := c.to.target(c.model, c.facts, c.capabilities)
	if err != nil {
		return nil, err
	}
	written, rep, err := writeTools(c.to, target, specs)
	c.addLosses(writing, rep)
	return written, err
}

// readTools reads a tool, a list of tools, or an object that holds such a list: a request,
// or the response of an MCP server.
func readTools(data []byte, from dragoman.Dialect) ([]dragoman.ToolSpec, dragoman.Report, error) {
	if from == sniff.Canonical {
		list, _, err := storedList[dragoman.ToolSpec](data)
		return list, dragoman.Report{}, err
	}
	elements, err := toolList(data)
	if err != nil {
		return nil, dragoman.Report{}, err
	}
	if from == sniff.MCP {
		return readMCPTools(elements)
	}
	at := &wire.Of(dialectOf(from).Codec).Body
	if at.WrapTool != nil {
		for i := range elements {
			elements[i] = at.WrapTool(elements[i])
		}
	}
	list, err := json.Marshal(elements)
	if err != nil {
		return nil, dragoman.Report{}, err
	}
	l := dialectOf(from)
	field := string(list)
	path := strings.Split(strings.TrimPrefix(at.Tools, "/"), "/")
	for i, name := range slices.Backward(path) {
		if field = `"` + name + `":` + field; i > 0 {
			field = "{" + field + "}"
		}
	}
	req, rep, err := l.DecodeRequest([]byte(`{"`+l.list+`":[],`+field+`}`), dialect.DecodeOptions{})
	if err != nil {
		if at := new(*dragoman.DecodeError); errors.As(err, at) {
			in := **at
			in.Offset = -1 // the offset is in the generated request, not in the input
			err = &in
		}
		return nil, rep, err
	}
	return req.Tools, rep, nil
}

// toolList returns the tools of a document that is a tool, a list, or an object with a list.
func toolList(data []byte) ([]json.RawMessage, error) {
	data = bytes.TrimSpace(data)
	var elements []json.RawMessage
	if bytes.HasPrefix(data, []byte("[")) {
		err := json.Unmarshal(data, &elements)
		return elements, err
	}
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil, errors.New("the input is not a JSON object or array, so it has no tools")
	}
	type list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	var holder struct {
		Tools      []json.RawMessage `json:"tools"`
		ToolConfig *list             `json:"toolConfig"`
		Result     *list             `json:"result"` // a JSON-RPC response
	}
	if err := json.Unmarshal(data, &holder); err != nil {
		if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
			return nil, fmt.Errorf("%q is a JSON %s: expected a list of tools", wrong.Field, wrong.Value)
		}
		return nil, err
	}
	switch {
	case holder.Tools != nil:
		return holder.Tools, nil
	case holder.ToolConfig != nil:
		return holder.ToolConfig.Tools, nil
	case holder.Result != nil:
		return holder.Result.Tools, nil
	default:
		return []json.RawMessage{data}, nil
	}
}

func readMCPTools(elements []json.RawMessage) (specs []dragoman.ToolSpec, rep dragoman.Report, err error) {
	reg := all.Registry(interop.Options{})
	for i, el := range elements {
		read, sub, err := reg.InspectSchema(dragoman.Native{Format: toolformat.MCPTool, JSON: el})
		rep.Merge(fmt.Sprintf("/%d", i), sub)
		if err != nil {
			return specs, rep, fmt.Errorf("tool %d: %w", i, err)
		}
		specs = append(specs, read...)
	}
	return specs, rep, nil
}

// writeTools returns the list of tools as it appears in a request to the target.
func writeTools(l namedDialect, target targets.Target, specs []dragoman.ToolSpec) (json.RawMessage, dragoman.Report, error) {
	req := &dragoman.Request{Model: "model", Messages: []dragoman.Message{dragoman.UserText("hello")}, Tools: specs}
	enc, err := l.EncodeRequest(req, dialect.EncodeOptions{Target: target, Codecs: all.Codecs()})
	var rep dragoman.Report
	for _, loss := range enc.Report.Losses {
		if strings.HasPrefix(loss.Path, "/tools") {
			rep.Losses = append(rep.Losses, loss)
		}
	}
	if err != nil {
		return nil, rep, err
	}
	list, err := toolList(enc.Body)
	if err != nil {
		return nil, rep, err
	}
	if len(list) == 1 && bytes.Equal(list[0], enc.Body) { // toolList found no list and returned the whole body
		list = nil
	}
	if list == nil {
		return json.RawMessage("[]"), rep, nil
	}
	var b bytes.Buffer
	b.WriteByte('[')
	for i, el := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(el)
	}
	b.WriteByte(']')
	return b.Bytes(), rep, nil
}
