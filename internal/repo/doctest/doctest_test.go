//go:build unix

package doctest

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// root is the folder of the repository.
const root = "../../.."

// pages returns the pages that users read.
func pages(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guides/*.md", "docs/clients/*.md", "examples/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	if len(list) < 10 {
		t.Fatalf("only %d pages", len(list))
	}
	return list
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func parse(t *testing.T, page string) []*Block {
	t.Helper()
	blocks, err := Parse(read(t, page))
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	return blocks
}

// Every Go fragment of a page is code that the tests of the repository compile.
func TestFragmentsAreInTheRepository(t *testing.T) {
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"):
			files = append(files, read(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		for _, b := range parse(t, page) {
			if !b.Fragment() {
				continue
			}
			found := false
			for _, f := range files {
				found = found || Contains(f, b.Text)
			}
			if !found {
				t.Errorf("%s:%d: no Go file of the repository has these lines:\n%s", page, b.Line, b.Text)
			}
		}
	}
}

// Every command of a page runs, and prints what the page says.
func TestCommandsRun(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("the commands of the pages need bash")
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "dragoman"), root+"/cmd/dragoman").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, page := range pages(t) {
		blocks := parse(t, page)
		ports := usePorts(t, blocks)
		script, wants := session(t, page, blocks)
		if script == "" {
			continue
		}
		t.Run(strings.TrimPrefix(filepath.ToSlash(page), root+"/"), func(t *testing.T) {
			t.Parallel()
			if strings.Contains(script, "curl ") {
				if _, err := exec.LookPath("curl"); err != nil {
					t.Skip("the commands of this page need curl")
				}
			}
			outputs, err := run(t, bash, bin, script, blocks)
			for i, b := range wants {
				if i >= len(outputs) {
					t.Fatalf("%s:%d: not run", page, b.Line)
				}
				if i == len(outputs)-1 && err != nil {
					t.Fatalf("%s:%d: %v\n%s", page, b.Line, err, outputs[i])
				}
				if b.Want != nil {
					if err := Compare(*b.Want, ports.Replace(outputs[i])); err != nil {
						t.Errorf("%s:%d: %v", page, b.Line, err)
					}
				}
			}
		})
	}
}

const mark = "=== end of block ==="

// session returns the script of a page, and the blocks that it runs. Files are written where
// they are in the page, so that a later block may replace one.
func session(t *testing.T, page string, blocks []*Block) (script string, ran []*Block) {
	t.Helper()
	var b strings.Builder
	for i, block := range blocks {
		switch {
		case block.File() != "":
			fmt.Fprintf(&b, "mkdir -p \"$(dirname %[1]s)\" && cp \"$BLOCKS/%[2]d\" %[1]s\n", block.File(), i)
		case block.Runs():
			fmt.Fprintf(&b, "%s\nprintf '\\n%s\\n'\n", block.Text, mark)
			ran = append(ran, block)
		case block.Language == "bash", block.Language == "shell", block.Language == "console":
			t.Errorf("%s:%d: write sh, so that the commands are run", page, block.Line)
		}
	}
	if len(ran) == 0 {
		return "", nil
	}
	return b.String(), ran
}

var (
	loopback = regexp.MustCompile(`\b(127\.0\.0\.1|localhost):(\d{4,5})\b`)
	listens  = regexp.MustCompile(`(?i)listen\S*?\s*"?(?:127\.0\.0\.1|localhost):(\d{4,5})\b`)
)

// usePorts replaces each port that a page listens on (--listen 127.0.0.1:8088) by a free one, so
// that pages with the same port can run at the same time. The result turns the free ports of an
// output into those of the page.
func usePorts(t *testing.T, blocks []*Block) *strings.Replacer {
	t.Helper()
	free := map[string]string{}
	for _, b := range blocks {
		for _, m := range listens.FindAllStringSubmatch(b.Text, -1) {
			if !b.Runs() && b.File() == "" || free[m[1]] != "" {
				continue
			}
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close() // after all ports are chosen, so that they differ
			_, free[m[1]], _ = net.SplitHostPort(l.Addr().String())
		}
	}
	rewrite := func(text string) string {
		return loopback.ReplaceAllStringFunc(text, func(address string) string {
			host, port, _ := strings.Cut(address, ":")
			return host + ":" + cmp.Or(free[port], port)
		})
	}
	for _, b := range blocks {
		if b.Runs() || b.File() != "" {
			b.Text = rewrite(b.Text)
		}
	}
	var back []string
	for port, used := range free {
		back = append(back, ":"+used, ":"+port)
	}
	return strings.NewReplacer(back...)
}

var requires = regexp.MustCompile(`(?s)require \(.*?\)\n`)

// patience makes the pauses of a page longer, for machines that do other work at the same time.
const patience = "sleep() { command sleep $(($1 * 3)); }\n"

// run runs a script and returns the output of each block; after an error, the last output is
// that of the block that failed.
func run(t *testing.T, bash, bin, script string, blocks []*Block) ([]string, error) {
	t.Helper()
	dir, data := t.TempDir(), t.TempDir()
	for i, block := range blocks {
		if block.File() != "" {
			if err := os.WriteFile(filepath.Join(data, fmt.Sprint(i)), []byte(block.Text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	mod := "module example\n\ngo 1.26\n\nrequire github.com/dragoman-go/dragoman v0.0.0\n\n" +
		strings.Join(requires.FindAllString(read(t, root+"/go.mod"), -1), "\n") +
		"\nreplace github.com/dragoman-go/dragoman => " + module + "\n"
	for name, text := range map[string]string{"go.mod": mod, "go.sum": read(t, root+"/go.sum")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "-e", "-o", "pipefail", "-c", patience+script)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + t.TempDir(), "BLOCKS=" + data, "LANG=C.UTF-8", "NO_COLOR=1",
		"GOFLAGS=-mod=mod", "GONOSUMDB=*", "GOTOOLCHAIN=local", "TMPDIR=" + os.TempDir(),
	}, goEnv(t)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // servers that the page started end with it
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, time.Second
	file, err := os.Create(filepath.Join(data, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	_ = kill()
	outputs := strings.Split(read(t, file.Name()), "\n"+mark+"\n")
	if err == nil {
		outputs = outputs[:len(outputs)-1]
	}
	return outputs, err
}

// goEnv returns the variables that let go build with another home folder: it uses the caches and
// the module proxy of this test. On a fresh machine the cache lacks the go.mod files of modules
// that only other systems compile.
func goEnv(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOROOT", "GOPROXY"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, name+"="+strings.TrimSpace(string(out)))
	}
	return list
}

func TestParse(t *testing.T) {
	blocks, err := Parse("a\n\n```sh\necho 1\n```\n\n```text\n1\n```\n```go main.go\npackage main\n```\n````md\n```sh\n```\n````\n```sh skip (needs a key)\nx\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) != 5 || !blocks[0].Runs() || blocks[0].Want == nil || *blocks[0].Want != "1" {
		t.Errorf("%+v", blocks)
	}
	if blocks[2].File() != "main.go" || blocks[3].Runs() || blocks[4].Runs() {
		t.Errorf("%+v", blocks)
	}
	for _, page := range []string{"```sh\n", "```sh later\n```\n", "```go a b\n```\n"} {
		if _, err := Parse(page); err == nil {
			t.Errorf("no error for %q", page)
		}
	}
}

func TestUsePorts(t *testing.T) {
	blocks, err := Parse("```yaml a.yaml\nlisten: 127.0.0.1:8088\n```\n```sh\ncurl localhost:8088 127.0.0.1:8080\ndragoman sim --listen 127.0.0.1:8081\n```\n```text\n127.0.0.1:8088\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	ports := usePorts(t, blocks)
	_, first, _ := strings.Cut(blocks[0].Text, "127.0.0.1:")
	_, second, _ := strings.Cut(blocks[1].Text, "--listen 127.0.0.1:")
	if first == "8088" || second == "8081" || first == second {
		t.Errorf("ports %s and %s", first, second)
	}
	if want := "curl localhost:" + first + " 127.0.0.1:8080\ndragoman sim --listen 127.0.0.1:" + second; blocks[1].Text != want {
		t.Errorf("%q, want %q", blocks[1].Text, want)
	}
	if got := ports.Replace("on 127.0.0.1:" + first); got != "on "+*blocks[1].Want {
		t.Errorf("the output of the page becomes %q", got)
	}
}

func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		want, got string
		same      bool
	}{
		{"a\nb", "a \nb\n", true},
		{"a\nb", "a", false},
		{"a", "a\nb", false},
		{"a\n…\nc", "a\nb\nb\nc", true},
		{"a\n…", "a", true},
		{"…\nc", "a\nb", false},
		{"port …, ok", "port 80, ok", true},
		{"a.c", "abc", false},
	} {
		if err := Compare(tc.want, tc.got); (err == nil) != tc.same {
			t.Errorf("%q, %q: %v", tc.want, tc.got, err)
		}
	}
}
