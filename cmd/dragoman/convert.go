package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/serving/sniff"
)

func newConvert() *cobra.Command {
	var c conversion
	var from, to, kind, report string
	var fail []string
	cmd := &cobra.Command{
		Use:   "convert --to DIALECT [FILE]",
		Short: "Convert a request, response, stream, messages or tools to another dialect",
		Long: `Convert reads a file, or standard input, in any dialect and writes it in another
one. It detects the dialect and the kind of the input. On standard error it reports what
it detected and what was lost in the conversion. The path of each loss points into the
input (losses while reading) or into the canonical form, which is the form that dragoman
stores (losses while writing). With --report json, the report is one JSON document, also
after an error; docs/command.md describes its fields.

A converted request is one that the target accepts: calls and results are paired and
ordered, names and ids are made valid, and schemas are simplified. Text in streams is
converted chunk by chunk without buffering, except for OpenAI Responses, whose streams
repeat the whole text at the end. Arguments of tool calls are buffered until the response
is complete, because only then is it known that the calls may run. Many long calls need
memory.

Dialects:` + helpDialects() + `
  canonical                 or dragoman: the stored form; not for streams

Models of one dialect differ in what they accept. Requests, messages and tools are
converted for the model that --model or else the request names. For example, settings
that the model is known to refuse are dropped (docs/providers.md, "Models"). --model also
sets the model name in the result, unless the API has the model in the URL. --capability
NAME declares that the model has a capability, and NAME=false that it does not. The
capabilities are:` + helpCapabilities() + `.

Tools can also be in the format that MCP servers list them in (--from mcp).`,
		Example: `  dragoman convert --to anthropic request.json
  curl -sN localhost:8080/v1/chat/completions -d @request.json | dragoman convert --to responses --kind stream
  dragoman convert --to gemini --kind tools --fail-on dropped tools.json
  dragoman convert --to canonical request.json | dragoman convert --to gemini
  dragoman convert --to gemini request.json | dragoman convert --to chat --model gpt-5
  dragoman convert --to chat --from claude --report json < request.json 2> report.json`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			asJSON, err := reportFormat(report)
			if err != nil {
				return err
			}
			err = c.command(cmd, args, from, to, kind, fail)
			return c.result.finish(cmd.ErrOrStderr(), asJSON, err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "the dialect to write, or canonical")
	f.StringVar(&from, "from", "", "the dialect of the input, canonical or mcp (default: detected)")
	f.StringVar(&kind, "kind", "", "the kind of input: request, response, stream, messages or tools (default: detected)")
	f.StringVar(&c.model, "model", "", "convert for this model, and set its name in the result")
	f.StringVar(&c.facts, "model-file", "", "a file that adds or changes facts about models (default: the variable DRAGOMAN_MODELS)")
	f.StringSliceVar(&c.capabilities, "capability", nil, "a capability of the model or server: name, name=false or name=value")
	f.StringVar(&report, "report", "text", "report format: text or json")
	f.StringSliceVar(&fail, "fail-on", nil, "exit with code 3 if there are losses of these kinds or severities: dropped, lowered, renamed, synthesized, moved, info, warn, serious")
	f.BoolVar(&c.lift, "lift-errors", false, `treat a tool result that starts with "ERROR: " as an error result`)
	f.BoolVar(&c.abandon, "abandon", false, "also give up calls without a result at the end of the conversation, instead of failing; earlier calls without a result are always given up")
	return cmd
}

// conversion holds the flags and the state of one run of convert.
type conversion struct {
	to            namedDialect
	model         string
	facts         string
	capabilities  []string
	lift, abandon bool
	result        converted
}

// command runs convert with the values of its flags.
func (c *conversion) command(cmd *cobra.Command, args []string, from, to, kind string, fail []string) error {
	if to == "" {
		return usageError("missing --to, the dialect to write:%s", helpDialects())
	}
	var err error
	if c.to, err = convertibleNamed(to); err != nil {
		return err
	}
	c.result.To = c.to.Dialect()
	if _, err := c.to.target(c.model, c.facts, c.capabilities); err != nil {
		return err
	}
	source, err := sourceNamed(from, convertibleNamed)
	if err != nil {
		return err
	}
	k, err := kindNamed(kind)
	if err != nil {
		return err
	}
	forbidden, err := parseFailOn(fail)
	if err != nil {
		return err
	}
	in, done, err := input(cmd, args)
	if err != nil {
		return err
	}
	defer done()
	if err := c.run(in, cmd.OutOrStdout(), k, source); err != nil {
		return err
	}
	return forbidden.check(c.result.lines())
}

func (c *conversion) run(in io.Reader, out io.Writer, kind sniff.Kind, from dragoman.Dialect) error {
	r := reader(in)
	head, err := r.Peek(sniff.HeadSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return failed("%w", err)
	}
	if kind == sniff.Stream || kind == "" && sniff.IsStream(head) {
		if len(bytes.TrimSpace(head)) == 0 {
			return failed("the input is empty")
		}
		if err := c.guess(head, sniff.Stream, from); err != nil {
			return err
		}
		return c.stream(r, out)
	}
	data, err := readDocument(r)
	if err != nil {
		return err
	}
	if err := c.guess(data, kind, from); err != nil {
		return err
	}
	body, err := c.document(data)
	if err != nil {
		return failed("%w", err)
	}
	c.result.Or = c.alternatives(data, body)
	if !bytes.HasSuffix(body, []byte("\n")) {
		body = append(body[:len(body):len(body)], '\n')
	}
	if _, err := out.Write(body); err != nil {
		return failed("%w", err)
	}
	return nil
}

// document converts an input that is not a stream.
func (c *conversion) document(data []byte) ([]byte, error) {
	switch c.result.Kind {
	case sniff.Request:
		return c.request(data)
	case sniff.Response:
		return c.response(data)
	case sniff.Messages:
		return c.messages(data)
	default:
		return c.tools(data)
	}
}

// alternatives returns the other dialects that the input could be in. It leaves out
// dialects that give the same result as body, because then there is nothing to choose.
func (c *conversion) alternatives(data, body []byte) (or []dragoman.Dialect) {
	for _, d := range c.result.Or {
		other := *c
		other.result = converted{From: d, To: c.result.To, Kind: c.result.Kind}
		got, err := other.document(data)
		if err != nil || !bytes.Equal(got, body) || !slices.Equal(other.result.aboveInfo(), c.result.aboveInfo()) {
			or = append(or, d)
		}
	}
	return or
}

func (c *conversion) guess(data []byte, kind sniff.Kind, from dragoman.Dialect) error {
	g, err := sniff.Of(data, kind, from)
	var ambiguous *sniff.AmbiguousError
	switch {
	case err == nil:
	case errors.Is(err, sniff.ErrUnknown) && from == sniff.MCP && kind == "":
		return failed(`the input is not an MCP tool, which has a name and an "inputSchema"%s`, suggestInput(data, kind, from))
	case errors.Is(err, sniff.ErrUnknown) && kind != "":
		return failed("cannot detect the dialect of these %s; %s%s", plurals[kind], flagHint(kind, from), suggestInput(data, kind, from))
	case errors.Is(err, sniff.ErrUnknown) && from != "":
		return failed("cannot detect which kind of %s document the input is; %s%s", from, flagHint(kind, from), suggestInput(data, kind, from))
	case errors.Is(err, sniff.ErrUnknown):
		return failed("cannot detect the dialect and kind of the input; %s", flagHint(kind, from))
	case errors.As(err, &ambiguous):
		return failed("%w; use --from to choose", err)
	default:
		return failed("%w; if that is wrong, %s", err, flagHint(kind, from))
	}
	if g.Dialect == sniff.MCP && g.Kind != sniff.Tools {
		return failed("MCP has only tools, not a model %s%s", g.Kind, suggestInput(data, kind, from))
	}
	c.result = converted{From: g.Dialect, To: c.to.Dialect(), Kind: g.Kind, Because: g.Because, Or: g.Or}
	return nil
}

func (c *conversion) addLosses(in step, rep dragoman.Report) {
	for _, l := range rep.Losses {
		c.result.Losses = append(c.result.Losses, loss{Step: in, Kind: l.Kind, Severity: l.Severity, Path: l.Path, Detail: plain(l.Detail), From: l.From, To: l.To})
	}
}

func (c *conversion) decodeOptions() dialect.DecodeOptions {
	return dialect.DecodeOptions{LiftErrors: c.lift, DeltasOnly: true}
}

func (c *conversion) from() namedDialect { return dialectOf(c.result.From) }

func (c *conversion) request(data []byte) ([]byte, error) {
	req, rep, err := c.from().DecodeRequest(data, c.decodeOptions())
	c.addLosses(reading, rep)
	if err != nil {
		return nil, withLine(data, err)
	}
	if c.model != "" {
		req.Model = c.model
	}
	if c.to.Dialect() == sniff.Canonical {
		enc, err := c.to.EncodeRequest(req, dialect.EncodeOptions{})
		return enc.Body, err
	}
	target, err := c.to.target(req.Model, c.facts, c.capabilities)
	if err != nil {
		return nil, err
	}
	o := history.Options{Target: target, Limits: c.to.Limits(), Abandon: codes.AbandonPassed}
	if c.abandon {
		o.Abandon = codes.AbandonAll
	}
	req, rep, err = history.Normalize(req, o)
	c.addLosses(normalizing, rep)
	if errors.Is(err, dragoman.ErrUnsettledCalls) {
		return nil, fmt.Errorf("%w (use --abandon to give them up)", err)
	}
	if err != nil {
		return nil, err
	}
	enc, err := wirekit.EncodeNormalized(c.to, req, dialect.EncodeOptions{Target: target, Codecs: all.Codecs()})
	c.addLosses(writing, enc.Report)
	if err != nil {
		return enc.Body, err
	}
	c.reportMissingModel(req)
	return enc.Body, nil
}

// reportMissingModel reports a loss if a request has no model and the target dialect has the model
// in the body. It does not if the source dialect is the same: then nothing was lost.
func (c *conversion) reportMissingModel(req *dragoman.Request) {
	if req.Model != "" || c.to.Limits().ModelInURL || c.result.From == c.to.Dialect() {
		return
	}
	where := "the input has none"
	if c.from().Limits().ModelInURL {
		where = fmt.Sprintf("%s has the model in the URL, which is not part of the input", c.result.From)
	}
	c.result.Losses = append(c.result.Losses, loss{
		Step: writing, Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: "/model",
		Detail: fmt.Sprintf("the request has no model: %s; set it with --model", where),
	})
}

func (c *conversion) response(data []byte) ([]byte, error) {
	resp, rep, err := c.from().DecodeResponse(data, c.decodeOptions())
	c.addLosses(reading, rep)
	if err != nil {
		return nil, withLine(data, err)
	}
	enc, err := c.to.EncodeResponse(resp, dialect.EncodeOptions{Model: c.model})
	c.addLosses(writing, enc.Report)
	return enc.Body, err
}

func (c *conversion) stream(in io.Reader, out io.Writer) error {
	if c.to.Dialect() == sniff.Canonical || c.result.From == sniff.Canonical {
		return failed("the canonical form has no streams: convert a response instead")
	}
	if c.result.From == c.to.Dialect() && c.model == "" {
		return c.unchangedStream(in, out)
	}
	from := c.from().NewStreamDecoder(c.decodeOptions())
	to := c.to.NewStreamEncoder(dialect.EncodeOptions{Model: c.model, StreamUsage: true})
	err := dialect.Translate(out, to, from, in)
	c.addLosses(reading, from.Report())
	c.addLosses(writing, to.Report())
	if err != nil {
		return failed("%w", err)
	}
	return nil
}

// unchangedStream passes the bytes of a stream through and fails if it is broken.
func (c *conversion) unchangedStream(in io.Reader, out io.Writer) error {
	all := io.TeeReader(in, out)
	o := c.decodeOptions()
	o.NoNative = true
	for _, err := range dialect.Events(c.from().NewStreamDecoder(o), all) {
		if err != nil {
			_, rest := io.Copy(io.Discard, all)
			return failed("%w", errors.Join(err, rest))
		}
	}
	return nil
}

// messages converts a list of messages, or a single one. It puts them into a request that
// has nothing else.
func (c *conversion) messages(data []byte) ([]byte, error) {
	req, single, err := c.readMessages(data)
	if err != nil {
		return nil, err
	}
	if c.to.Dialect() == sniff.Canonical {
		if single && len(req.Messages) == 1 {
			return stored(req.Messages[0])
		}
		return stored(req.Messages)
	}
	target, err := c.to.target(c.model, c.facts, c.capabilities)
	if err != nil {
		return nil, err
	}
	enc, err := c.to.EncodeRequest(req, dialect.EncodeOptions{Target: target, Codecs: all.Codecs()})
	c.addLosses(writing, dragoman.Report{Losses: slices.DeleteFunc(enc.Report.Losses, func(l dragoman.Loss) bool {
		return !strings.HasPrefix(l.Path, "/messages") // other paths point into the generated request
	})})
	if err != nil {
		return nil, err
	}
	var written map[string]json.RawMessage
	if err := json.Unmarshal(enc.Body, &written); err != nil {
		return nil, err
	}
	for _, name := range []string{"system", "systemInstruction", "instructions"} {
		if written[name] != nil {
			c.result.Losses = append(c.result.Losses, loss{
				Step: writing, Kind: dragoman.Dropped, Severity: dragoman.Serious, Path: "/messages",
				Detail: fmt.Sprintf("%[2]s has system messages in the request field %[1]q, not in the messages; convert a whole request to keep them", name, c.to.Dialect()),
			})
		}
	}
	list := written[c.to.list]
	var elements []json.RawMessage
	if json.Unmarshal(list, &elements) == nil && single && len(elements) == 1 {
		return elements[0], nil
	}
	if list == nil {
		list = json.RawMessage("[]")
	}
	return list, nil
}

// readMessages reads messages into a request that has nothing else.
func (c *conversion) readMessages(data []byte) (req *dragoman.Request, single bool, err error) {
	if c.result.From == sniff.Canonical {
		list, single, err := storedList[dragoman.Message](data)
		return &dragoman.Request{Messages: list}, single, err
	}
	from := c.from()
	around := envelope{`{"` + from.list + `":`, "}", "/" + from.list}
	if single = bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")); single {
		around = envelope{around.before + "[", "]}", around.at + "/0"}
	}
	req, rep, err := from.DecodeRequest(around.put(data), c.decodeOptions())
	for i := range rep.Losses {
		rep.Losses[i].Path = strings.TrimPrefix(rep.Losses[i].Path, around.at)
	}
	c.addLosses(reading, rep)
	return req, single, withLine(data, around.inside(err))
}

// envelope is the JSON around a part of a request that makes it a complete request. Paths
// and offsets in it differ from those of the input.
type envelope struct {
	before, after string
	// at is the JSON pointer of the part inside the envelope.
	at string
}

func (e envelope) put(data []byte) []byte {
	return slices.Concat([]byte(e.before), data, []byte(e.after))
}

// inside returns a decode error with the path and offset in the input.
func (e envelope) inside(err error) error {
	var at *dragoman.DecodeError
	if !errors.As(err, &at) {
		return err
	}
	in := *at
	in.Pointer = strings.TrimPrefix(at.Pointer, e.at)
	if at.Offset >= 0 {
		in.Offset = max(at.Offset-int64(len(e.before)), 0)
	}
	return &in
}
