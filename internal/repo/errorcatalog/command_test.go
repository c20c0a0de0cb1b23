package errorcatalog

import (
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"
)

const (
	chatRequest = `{"model":"gpt-5","messages":[{"role":"user","content":"Hello"}],"top_logprobs":2,"logprobs":true}` + "\n"
	toolList    = `[{"name":"get_weather","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]` + "\n"
)

func commandLine() section {
	return section{
		title: "On the command line",
		intro: "A command line that makes no sense ends with exit code 2, an input that cannot be used with exit code 1.",
		entries: []entry{
			{
				title: "Unknown command", command: `dragoman runn "Hello"`, exit: 2,
				means: "There is no such command.", fix: "Use the suggested name, or look at `dragoman --help`.",
			},
			{
				title: "Unknown flag", command: `dragoman run --modle sim/echo "Hello"`, exit: 2,
				means: "The command has no such flag.", fix: "`dragoman run --help` lists the flags of `run`.",
			},
			{
				title: "Missing argument", command: `dragoman sessions show`, exit: 2,
				means: "The command needs an argument that was not given.", fix: "The line after the colon shows the form of the command.",
			},
			{
				title: "Missing prompt", command: `dragoman run < /dev/null`, exit: 2,
				means: "Neither the arguments nor standard input have a prompt.", fix: "Write the prompt in quotes, or pipe it into the command.",
			},
			{
				title: "Unknown dialect", command: `dragoman convert --to antropic request.json`, exit: 2,
				means: "`--to` names no dialect.", fix: "Use one of the names in the list; the short form is enough.",
			},
			{
				title: "File not found", command: `dragoman convert --to chat request.json`,
				means: "The file does not exist in the current folder.", fix: "Check the name, or leave it out to read standard input.",
			},
			{
				title: "Input is not JSON", command: `dragoman convert --to anthropic request.json`,
				files: map[string]string{"request.json": "{\"model\": \"gpt-5\",\n \"messages\": [,]}\n"},
				means: "The file has a syntax error at this position.", fix: "Correct the JSON. A file that was written from a shell often lacks a quote there.",
			},
			{
				title: "Input is not recognized", command: `echo '{"text":"Hello"}' | dragoman convert --to gemini`,
				means: "The input looks like no request, response, stream or tool list of a known API.", fix: "If it is one, name its dialect with `--from` and its kind with `--kind`.",
			},
			{
				title: "Loss that --fail-on forbids", command: `dragoman convert --to anthropic --fail-on dropped request.json > result.json`, exit: 3,
				files: map[string]string{"request.json": chatRequest},
				means: "The result was written, but the conversion lost something that you excluded.", fix: "Remove the setting from the request, choose another target, or accept this kind of loss.",
			},
			{
				title: "No tools to check", command: `echo '{"type":"object"}' | dragoman lint --for gemini`,
				means: "`lint` found no tool definition in the input.", fix: "Wrap the schema in a tool, as the message shows, or pass the whole request.",
			},
			{
				title: "Arguments do not match the schema", command: `dragoman tools why shell --args '{"cmd":"ls"}'`,
				means: "The call would fail before a policy decides, because its arguments are invalid.", fix: "Correct the arguments. `dragoman tools list` shows the tools.",
			},
			{
				title: "Refused because no approver is attached", exit: 4,
				command: `dragoman run --model sim/planner 'Write the file "a.txt" with the content "x"' < /dev/null > /dev/null`,
				means:   "The model called a tool that needs your approval, and `run` could not ask you: standard input or standard error is not a terminal, or `--json` is set.",
				fix:     "Run it in a terminal, or permit the calls in advance.",
			},
			{
				title: "Unknown tool in --allow", command: `dragoman run --allow shel "Hello"`, exit: 2,
				means: "`--allow` takes the names of the tools of `run`.", fix: "Use one of the listed names.",
			},
			{
				title: "Simulator on a public address", command: `dragoman sim --listen 0.0.0.0:8080`, exit: 2,
				means: "The simulator serves everyone who reaches it, so it listens only on this machine by default.", fix: "Listen on 127.0.0.1, or add `--allow-remote` in a network that you trust.",
			},
			{
				title: "Gateway on a public address without keys", command: `dragoman serve --listen 0.0.0.0:8080`,
				means: "Without keys, everyone who reaches the gateway could spend your money.", fix: "Configure [keys](gateway.md), or listen on 127.0.0.1.",
			},
			{
				title: "Port in use", from: "`dragoman serve --listen 127.0.0.1:8080` (the same for `sim`)", run: portInUse,
				means: "Another program listens on this port, perhaps another gateway.", fix: "Stop it, or choose another port; `--listen 127.0.0.1:0` takes a free one.",
			},
			{
				title: "Unknown fault", command: `dragoman sim --fault c99`, exit: 2,
				means: "The simulator has no fault with this id.", fix: "`dragoman sim --faults` lists them.",
			},
		},
	}
}

func portInUse(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var texts []string
	for _, name := range []string{"serve", "sim"} {
		out, err := command(t, name, "--listen", l.Addr().String())
		if err == nil {
			t.Errorf("%s listens on a port that is in use", name)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		texts = append(texts, lines[len(lines)-1])
	}
	if texts[0] != texts[1] {
		t.Errorf("serve and sim report different errors: %q", texts)
	}
	return texts[0]
}

// command runs the command line in an empty folder and returns its output.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := shell(t, t.TempDir(), `exec dragoman "$@"`, nil)
	cmd.Args = append(cmd.Args, "sh")
	cmd.Args = append(cmd.Args, args...)
	out, err := cmd.CombinedOutput()
	if ran := new(exec.ExitError); err != nil && !errors.As(err, &ran) {
		t.Fatal(err)
	}
	return string(out), err
}
