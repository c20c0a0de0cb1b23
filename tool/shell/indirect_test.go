package shell

import (
	"errors"
	"strings"
	"testing"
)

func TestAttack_ProgramsThatRunThroughArguments(t *testing.T) {
	patterns := strings.Split("sed ...|awk ...|gawk ...|tar ...|sort ...|git ...|rg ...|man ...|make ...|go ...|rsync ...|scp ...|split ...|wget ...|"+
		"python3 manage.py ...|python3 -m pytest ...|npm run lint ...|npm ls ...|docker ps ...|git log ...|sed -n * ...|make test-*|cargo test ...", "|")
	list, err := Allow(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	permissive, err := Options{Indirect: true}.Allow(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	for _, refused := range []string{
		`sed e`, `sed '1e ls' f`, `sed 's/a/ls/e' f`, `sed 's/a/b/;e ls' f`, `sed -n 's/x/y/w out' f`, `sed -i 'w out' f`, `sed -e p -e e f`, `sed -ne e f`,
		`sed --expression=e f`, `sed --expression e f`, `sed --exp=e f`, `sed -f script f`, `sed --file=script f`, `sed -nf script f`, `sed 'r /etc/passwd' f`,
		`sed f -e e`, `sed 's,a,b,e' f`, `sed '/x/e' f`, `sed -- e f`, `sed 's/[/]/e/;s//x/e' f`,
		`sed --line-length 5 e f`, `sed --line-l 5 '1e ls' f`, `sed --line-length=5 e f`,
		`git merge-index sh -a`, `git -C d merge-index -o sh f`, `git remote-ext x 'sh -c ls'`, `git instaweb --httpd=sh`, `git --attr-source x config core.pager sh`,
		`awk 'BEGIN{system("ls")}'`, `awk '{print | "sh"}' f`, `awk 'BEGIN{"ls" | getline x}'`, `gawk -f x f`, `awk -f x`, `gawk --load=x 1`, `gawk -e 1 f`, `gawk '@load "x"' f`,
		`tar xf a.tar --to-command=sh`, `tar xf a.tar --to-com=sh`, `tar -x -I sh -f a`, `tar xIf sh a`, `tar cf a b --checkpoint=1 --checkpoint-action=exec=sh`, `tar --use-compress-program sh -xf a`,
		`sort --compress-program=sh f`, `sort --compress-prog sh f`, `split --filter=sh f`,
		`git -c core.pager=sh log`, `git -C d -c core.pager=sh log`, `git -calias.x=!sh x`, `git --config-env=core.pager=X log`, `git --exec-path=/tmp status`,
		`git config core.pager sh`, `git rebase -x sh main`, `git rebase --exec=sh main`, `git bisect run sh`, `git submodule foreach sh`, `git grep -Osh x`,
		`git clone -u sh x`, `git fetch --upload-pack=sh x`, `git fetch --upload-p sh x`, `git difftool -x sh`, `git log --ext-diff`,
		`rg --pre sh x`, `rg --pre=sh x`, `man -P sh ls`, `man --pager=sh ls`, `man -Hsh ls`,
		`make SHELL=sh`, `make -f x`, `make --eval=x`, `make --file=x`, `make -sf x`,
		`go test -exec sh ./...`, `go vet -vettool=x ./...`, `go build -toolexec=sh .`, `go run x`, `go generate ./...`, `go test --exec=sh .`,
		`rsync -e sh a b:c`, `rsync -avze sh a b:c`, `rsync --rsh=sh a b:c`, `scp -S sh a b:c`, `scp -oProxyCommand=sh a b:c`,
		`wget -e use_askpass=sh x`, `wget --use-askpass=sh x`, `cargo test --config x`,
	} {
		if _, err := list.Check(refused); !errors.Is(err, ErrNotAllowed) || !strings.Contains(err.Error(), "shell.Options.Indirect") {
			t.Errorf("%s: %v", refused, err)
		}
		if _, err := permissive.Check(refused); err != nil {
			t.Errorf("with Indirect, %s: %v", refused, err)
		}
	}
	for _, allowed := range []string{
		`sed -n 1,20p f`, `sed 's/a/b/g' f`, `sed -e 's|a|b|' -e '$d' f`, `sed -i.bak '/x/d;3q' f`, `sed -E 's/(a)/\1\/e/' f`, `sed -n '/a/,/b/p' file.e`, `sed 'y/abc/def/' f`, `sed --line-length 5 -n l f`,
		`awk '{print $1}' f`, `awk -F: 'NR==1{print $2}' f`, `tar -xzf a.tgz`, `tar czf a.tgz b`, `tar tvf a.tar`, `sort -u -k2 f`,
		`git log --oneline -5`, `git log -c`, `git diff --text`, `git log --cc`, `git status`, `git commit -m x`, `git -C d status`, `git rebase main`, `git grep x`, `git push -u origin main`,
		`rg -n x`, `man ls`, `make`, `make -j4 test`, `make -k all`, `make test-a`, `go test -run=x ./...`, `go build -o x .`, `rsync -av a b`,
		`python3 manage.py -c x`, `python3 -m pytest -k x`, `npm run lint --fix`, `npm ls --all`, `docker ps -a`, `cargo test -q`,
	} {
		if _, err := list.Check(allowed); err != nil {
			t.Errorf("%s: %v", allowed, err)
		}
	}
}

func TestPatternsForProgramsThatRunAnythingAreRefused(t *testing.T) {
	for _, pattern := range []string{
		"python ...", "python3 *", "python3.12 -c *", "perl -e *", "perl ...", "node ...", "ruby -e *", "/usr/bin/python3 ...", "less *", "vim ...", "npx ...", "npm ...",
		"npm run *", "npm exec ...", "docker ...", "docker run ...", "docker exec * ...", "kubectl exec ...", "go run *", "go generate ...", "git config ...", "git bisect ...",
		"tar --to-command=* ...", "sqlite3 ...",
	} {
		_, err := Allow(pattern)
		if !errors.Is(err, ErrPattern) || !strings.Contains(err.Error(), "shell.Options.Indirect") {
			t.Errorf("%s: %v", pattern, err)
		}
		if _, err := (Options{Indirect: true}).Allow(pattern); err != nil {
			t.Errorf("with Indirect, %s: %v", pattern, err)
		}
	}
	// All words of the command are named, or what follows goes to a script that is.
	list, err := Allow("python -c pass", "less README", "npm run build", "docker run hello", "git -c color.ui=false log", "git -c color.ui=false diff ...", "sed e", "python tools/x.py ...", "rsync -e ssh ...", "go run ./cmd/x ...")
	if err != nil {
		t.Fatal(err)
	}
	for _, allowed := range []string{"python -c pass", "less README", "npm run build", "git -c color.ui=false log", "git -c color.ui=false diff x", "sed e", "python tools/x.py -v", "rsync -e ssh a b:c", "go run ./cmd/x y"} {
		if _, err := list.Check(allowed); err != nil {
			t.Errorf("%s: %v", allowed, err)
		}
	}
	for _, refused := range []string{"git -c color.ui=false diff --ext-diff", "rsync -e ssh --rsync-path=x a b:c"} {
		if _, err := list.Check(refused); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s: %v", refused, err)
		}
	}
}

// Scripts are judged like commands, and words that only the run knows are refused.
func TestAttack_ScriptsThatRunThroughArguments(t *testing.T) {
	list := mustAllow(t, "git ...", "ls ...", "xargs ...", "tar ...")
	for text, allowed := range map[string]bool{
		"ls | xargs git log": false, "git log $x": false, "ls; git -c core.pager=sh log": false, "git log | ls": true, "ls $x": true, `tar xf "$f"`: false,
	} {
		c, _ := ParseScript(text)
		if err := list.Allows(&c); (err == nil) != allowed {
			t.Errorf("%s: %v", text, err)
		}
	}
}
