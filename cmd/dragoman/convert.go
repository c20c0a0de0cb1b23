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
		Use:   "convert --to LANGUAGE [FILE]",
		Short: "Turn a request, response, stream, message list or tools into another wire language",
		Long: `Convert reads a file, or standard input, in any of the wire languages and writes
it in another. It guesses what it reads, and says on standard error what it took
it for and what could not be kept. Each line of that says where: in the input
while it reads; in the canonical form, as dragoman stores it, while it writes.
With --report json that is one JSON document, also when something went wrong
(docs/command.md has its fields).

A request becomes one that the target accepts: calls and results are paired and
ordered, names and ids made legal, schemas lowered. The text of a stream is
converted as it comes, and not held, but for OpenAI Responses, which says all of
it again at its end. The arguments of calls are held until the answer has ended:
only then is it known that they may run. Many long calls take memory.

Languages:` + helpLanguages() + `
  canonical                 or dragoman: the stored form itself, but for streams

Models of one language differ in what they accept. A request, messages or tools are
written for the model that --model names, or else the request: settings that it is
known to refuse are dropped, for example (docs/providers.md, "Models"). --model also
names the model in the result; APIs that have it in the URL name none in the body.
--capability sets a capability, or with name=false unsets one that the model is known
to have:` + helpCapabilities() + `.

Tools are also read as MCP servers list them (--from mcp).`,
		Example: `  dragoman convert --to anthropic request.json
  curl -sN localhost:8080/v1/chat/completions -d @request.json | dragoman convert --to responses --kind stream
  dragoman convert --to gemini --kind tools --fail-on dropped tools.json
  dragoman convert --to canonical request.json | dragoman convert --to gemini
  dragoman convert --to gemini request.json | dragoman convert --to chat --model gpt-5
  dragoman convert --to chat --from claude --report json < request.json 2> report.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			asJSON, err := reportFormat(report)
			if err != nil {
				return err
			}
			err = c.command(cmd, args, from, to, kind, fail)
			return c.said.tell(cmd.ErrOrStderr(), asJSON, err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "the wire language to write, or canonical")
	f.StringVar(&from, "from", "", "the wire language of the input, canonical or mcp (default: guessed)")
	f.StringVar(&kind, "kind", "", "request, response, stream, messages or tools (default: guessed)")
	f.StringVar(&c.model, "model", "", "name this model in the result, where it has a place for one, and mind what is known of it")
	f.StringVar(&c.facts, "model-file", "", "a file that adds facts about models, or changes them (default: the variable DRAGOMAN_MODELS)")
	f.StringSliceVar(&c.capabilities, "capability", nil, "what the model or server can or cannot do: name, name=false or name=value")
	f.StringVar(&report, "report", "text", "how to report: text or json")
	f.StringSliceVar(&fail, "fail-on", nil, "exit with 3 after such losses: dropped, lowered, renamed, synthesized, moved, info, warn, serious")
	f.BoolVar(&c.lift, "lift-errors", false, `take "ERROR: " at the start of a tool result for its error flag`)
	f.BoolVar(&c.abandon, "abandon", false, "also give up calls without a result at the very end, which are refused otherwise; those that a message follows are given up in any case")
	return cmd
}

// conversion is one run of convert.
type conversion struct {
	to            language
	model         string
	facts         string
	capabilities  []string
	lift, abandon bool
	said          converted
}

// command is a run of convert from its command line.
func (c *conversion) command(cmd *cobra.Command, args []string, from, to, kind string, fail []string) error {
	if to == "" {
		return misused("convert needs --to, the wire language to write:%s", helpLanguages())
	}
	var err error
	if c.to, err = convertibleNamed(to); err != nil {
		return err
	}
	c.said.To = c.to.Dialect()
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
	return forbidden.check(c.said.lines())
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
	c.said.Or = c.otherwise(data, body)
	if !bytes.HasSuffix(body, []byte("\n")) {
		body = append(body[:len(body):len(body)], '\n')
	}
	if _, err := out.Write(body); err != nil {
		return failed("%w", err)
	}
	return nil
}

// document converts what is no stream.
func (c *conversion) document(data []byte) ([]byte, error) {
	switch c.said.Kind {
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

// otherwise are the languages that the input could be in as well, and that would
// make something else of it than body: where it is the same there is nothing to
// choose.
func (c *conversion) otherwise(data, body []byte) (or []dragoman.Dialect) {
	for _, d := range c.said.Or {
		other := *c
		other.said = converted{From: d, To: c.said.To, Kind: c.said.Kind}
		got, err := other.document(data)
		if err != nil || !bytes.Equal(got, body) || !slices.Equal(other.said.graver(), c.said.graver()) {
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
		return failed(`this is no tool as MCP servers list them, with a name and an "inputSchema"%s`, looksLike(data, kind, from))
	case errors.Is(err, sniff.ErrUnknown) && kind != "":
		return failed("cannot tell in which wire language these %s are; %s%s", plurals[kind], settles(kind, from), looksLike(data, kind, from))
	case errors.Is(err, sniff.ErrUnknown) && from != "":
		return failed("cannot tell what of %s the input is; %s%s", from, settles(kind, from), looksLike(data, kind, from))
	case errors.Is(err, sniff.ErrUnknown):
		return failed("cannot tell what the input is; %s", settles(kind, from))
	case errors.As(err, &ambiguous):
		return failed("%w; --from says which", err)
	default:
		return failed("%w; if it is something else, %s", err, settles(kind, from))
	}
	if g.Dialect == sniff.MCP && g.Kind != sniff.Tools {
		return failed("MCP servers list tools, and have no %s of a model%s", g.Kind, looksLike(data, kind, from))
	}
	c.said = converted{From: g.Dialect, To: c.to.Dialect(), Kind: g.Kind, Because: g.Because, Or: g.Or}
	return nil
}

func (c *conversion) lost(in step, rep dragoman.Report) {
	for _, l := range rep.Losses {
		c.said.Losses = append(c.said.Losses, loss{Step: in, Kind: l.Kind, Severity: l.Severity, Path: l.Path, Detail: plain(l.Detail), From: l.From, To: l.To})
	}
}

func (c *conversion) decodeOptions() dialect.DecodeOptions {
	return dialect.DecodeOptions{LiftErrors: c.lift, DeltasOnly: true}
}

func (c *conversion) from() language { return languageOf(c.said.From) }

func (c *conversion) request(data []byte) ([]byte, error) {
	req, rep, err := c.from().DecodeRequest(data, c.decodeOptions())
	c.lost(reading, rep)
	if err != nil {
		return nil, placed(data, err)
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
	c.lost(normalising, rep)
	if errors.Is(err, dragoman.ErrUnsettledCalls) {
		return nil, fmt.Errorf("%w (--abandon gives them up)", err)
	}
	if err != nil {
		return nil, err
	}
	enc, err := wirekit.EncodeNormalized(c.to, req, dialect.EncodeOptions{Target: target, Codecs: all.Codecs()})
	c.lost(writing, enc.Report)
	if err != nil {
		return enc.Body, err
	}
	c.missModel(req)
	return enc.Body, nil
}

// missModel reports that a request names no model in a language that wants one
// in the body. Between two requests of one language nothing is missing that was
// there.
func (c *conversion) missModel(req *dragoman.Request) {
	if req.Model != "" || c.to.Limits().ModelInURL || c.said.From == c.to.Dialect() {
		return
	}
	where := "it had none"
	if c.from().Limits().ModelInURL {
		where = fmt.Sprintf("%s has it in the URL, which is not part of the input", c.said.From)
	}
	c.said.Losses = append(c.said.Losses, loss{
		Step: writing, Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: "/model",
		Detail: fmt.Sprintf("the request names no model: %s; --model names one", where),
	})
}

func (c *conversion) response(data []byte) ([]byte, error) {
	resp, rep, err := c.from().DecodeResponse(data, c.decodeOptions())
	c.lost(reading, rep)
	if err != nil {
		return nil, placed(data, err)
	}
	enc, err := c.to.EncodeResponse(resp, dialect.EncodeOptions{Model: c.model})
	c.lost(writing, enc.Report)
	return enc.Body, err
}

func (c *conversion) stream(in io.Reader, out io.Writer) error {
	if c.to.Dialect() == sniff.Canonical || c.said.From == sniff.Canonical {
		return failed("the canonical form of a stream is events in memory, which are not stored; convert a response")
	}
	if c.said.From == c.to.Dialect() && c.model == "" {
		return c.unchangedStream(in, out)
	}
	from := c.from().NewStreamDecoder(c.decodeOptions())
	to := c.to.NewStreamEncoder(dialect.EncodeOptions{Model: c.model, StreamUsage: true})
	err := dialect.Translate(out, to, from, in)
	c.lost(reading, from.Report())
	c.lost(writing, to.Report())
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

// messages converts a list of messages, or a single one, by way of a request
// that holds nothing else.
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
	c.lost(writing, dragoman.Report{Losses: slices.DeleteFunc(enc.Report.Losses, func(l dragoman.Loss) bool {
		return !strings.HasPrefix(l.Path, "/messages") // which is of the request that never was
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
			c.said.Losses = append(c.said.Losses, loss{
				Step: writing, Kind: dragoman.Dropped, Severity: dragoman.Serious, Path: "/messages",
				Detail: fmt.Sprintf("the system's words belong to %q, beside the messages of %s; convert a whole request to keep them", name, c.to.Dialect()),
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

// readMessages reads messages into a request that holds nothing else.
func (c *conversion) readMessages(data []byte) (req *dragoman.Request, single bool, err error) {
	if c.said.From == sniff.Canonical {
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
	c.lost(reading, rep)
	return req, single, placed(data, around.inside(err))
}

// envelope is what is put around a part of a request, so that it is one: its
// places are not those of the input.
type envelope struct {
	before, after string
	// at is the pointer of what is inside.
	at string
}

func (e envelope) put(data []byte) []byte {
	return slices.Concat([]byte(e.before), data, []byte(e.after))
}

// inside is an error with its place in the input.
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
